"""The Web API as a port: calls, their failures, cached look-ups of names."""
