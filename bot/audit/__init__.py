"""The audit trail: its chain, its checkpoints, its verification, its feed."""
