"""The container's health check: exit 0 when the address answers 200, else 1. Without curl, without a shell."""

import http.client
import sys
from urllib.parse import urlsplit

USUAL = "http://127.0.0.1:3000/healthz"
TIMEOUT_S = 3.0  # less than the check's own timeout, 5 s

if __name__ == "__main__":
    asked = urlsplit(sys.argv[1] if len(sys.argv) > 1 else USUAL)
    connection = http.client.HTTPConnection(asked.hostname or "", asked.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", asked.path or "/")
        sys.exit(connection.getresponse().status != http.client.OK)
    except (OSError, http.client.HTTPException) as error:
        sys.exit(f"{asked.geturl()}: {error}")
