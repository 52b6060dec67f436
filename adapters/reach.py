"""Whether anybody is at an address: a connection, and a question that changes nothing."""

from typing import Final
from urllib.parse import urlsplit

from adapters.address import url_of
from adapters.http import http_client, mapped_errors
from adapters.http_answer import Request
from adapters.http_client import HttpClient

REACH_S: Final = 5.0


async def reach(client: HttpClient, url: str, what: str) -> None:
    """`OPTIONS /` of its host, without a credential; any answer will do. Raises AdapterError.

    `what` names the other side in errors.
    """
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    with mapped_errors(what):
        request = Request("OPTIONS", url_of(f"{parts.scheme}://{host}/"), {}, None, client.times)
        response = await client.send(request)
        await response.aclose()


async def reach_alone(url: str, what: str) -> None:
    """The same over a connection of its own, which reaches that host only. Raises AdapterError."""
    host = frozenset({urlsplit(url).hostname or ""})
    client = http_client(connect_s=REACH_S, read_s=REACH_S, allowed_hosts=host)
    try:
        await reach(client, url, what)
    finally:
        await client.aclose()
