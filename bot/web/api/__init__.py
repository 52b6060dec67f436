"""The HTTP API: its callers, its operations, and its format (docs/api.md)."""
