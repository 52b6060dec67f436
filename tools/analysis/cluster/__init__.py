"""Find faults of a Kubernetes cluster in its objects and events."""
