"""Clients of outside systems. They implement what `tools` declares and know nothing of chat."""
