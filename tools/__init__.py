"""The tools that a model may call, and the only path to call them. Pure: no I/O library."""
