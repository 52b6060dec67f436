"""Adapters of tools that declare a port of their own; `bot/wiring/bindings.py` has a line for each."""
