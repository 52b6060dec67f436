"""The conversation: a turn, its loop of rounds and tools, and what a model is told."""
