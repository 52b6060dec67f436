"""What is wrong in a Kubernetes cluster, read from its objects and events."""
