"""Read-only Kubernetes API: access, kinds, masking, and rollouts as deploys."""
