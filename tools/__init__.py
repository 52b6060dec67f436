"""What a model may call, and the one path by which it is called. Pure: no I/O library lives here."""
