"""The Kubernetes API, read only: access, kinds, what is hidden, and rollouts as deploys."""
