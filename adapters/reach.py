"""Whether anybody is at an address: a connection, and a question that changes nothing."""

from typing import Final
from urllib.parse import urlsplit

import httpx

from adapters.http import http_client, mapped_errors

REACH_S: Final = 5.0


async def reach(client: httpx.AsyncClient, url: str, what: str) -> None:
    """`OPTIONS /` of its host, without a credential; any answer will do. Raises AdapterError.

    `what` names the other side in errors.
    """
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    with mapped_errors(what):
        request = httpx.Request("OPTIONS", f"{parts.scheme}://{host}/")
        response = await client.send(request, stream=True)
        await response.aclose()


async def reach_alone(url: str, what: str) -> None:
    """The same over a connection of its own, which reaches that host only. Raises AdapterError."""
    host = frozenset({urlsplit(url).hostname or ""})
    client = http_client(connect_s=REACH_S, read_s=REACH_S, allowed_hosts=host)
    try:
        await reach(client, url, what)
    finally:
        await client.aclose()
