"""The audit log: its chain, its checkpoints, its verification, its feed."""
