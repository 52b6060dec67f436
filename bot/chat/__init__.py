"""The conversation: a turn, its loop of rounds and tools, and the model's prompt."""
