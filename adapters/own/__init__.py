"""Adapters of tools that declare a port of their own; `bot/app/backend_kinds.py` has a line for each."""
