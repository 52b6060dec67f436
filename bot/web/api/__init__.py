"""The HTTP API: who calls, what they may ask for, and in which form it is told (docs/api.md)."""
