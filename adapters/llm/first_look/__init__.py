"""The computed picture with which a model starts an investigation: its calls and their digest."""
