"""Why an address cannot be listened on, in words."""

import errno


def why_not(error: OSError, host: str, port: int) -> str:
    """What happened and what to do; for an error of binding a server's socket."""
    match error.errno:
        case errno.EADDRINUSE:
            return f"port {port} of {host} is in use by another process; stop that, or choose another port"
        case errno.EACCES:
            return f"port {port} may not be opened by this user; choose one above 1023"
        case _:
            return f"cannot listen on {host}, port {port}: {error.strerror or error}"
