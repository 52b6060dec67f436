"""One HTTP exchange with the control plane, and its body in and out. What it means is not here."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import httpx
import orjson
from pydantic import JsonValue

from adapters.control_plane.port import BadTemplate
from adapters.errors import AdapterError
from adapters.http.body import read_capped
from adapters.http.errors import mapped_errors
from tools.outside_json import in_whole_characters

MAX_ANSWER_BYTES: Final = 65_536
MAX_WORDS: Final = 500  # characters of an answer that is not JSON
_NOT_CONNECTED: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


async def exchange(
    client: httpx.AsyncClient, request: httpx.Request, timeout_s: float
) -> tuple[int, bytes]:
    """The status and body; a body that breaks off or is too long is left out.

    Raises AdapterError when no status arrived.
    """
    with mapped_errors(f"the control plane at {request.url.host}"):
        async with asyncio.timeout(timeout_s):
            response = await client.send(request, stream=True)
            try:
                return response.status_code, await _body_or_nothing(response)
            finally:
                await response.aclose()


async def _body_or_nothing(response: httpx.Response) -> bytes:
    """A status that has arrived stays true when its body does not."""
    try:
        return await read_capped(response, MAX_ANSWER_BYTES)
    except AdapterError:
        return b""


def value_of(body: bytes) -> JsonValue:
    for text in (body, in_whole_characters(body)):
        with suppress(orjson.JSONDecodeError):
            value: JsonValue = orjson.loads(text) if text else None
            return value
    return body.decode("utf-8", "replace")[:MAX_WORDS]


def never_connected(error: BaseException) -> bool:
    """Whether the network says that no connection was made: no byte can have left."""
    return isinstance(error.__cause__, _NOT_CONNECTED)


def url_of(filled: str, query: Mapping[str, str] | None = None) -> httpx.URL:
    """The URL with `query` merged in. Raises BadTemplate for no URL, and above 65,536 characters."""
    try:
        url = httpx.URL(filled)
        return url.copy_merge_params(query) if query else url
    except httpx.InvalidURL as error:
        raise BadTemplate("not a URL, or too long for one") from error


def unformed(error: BadTemplate | KeyError) -> str:
    if isinstance(error, KeyError):
        return "the action's credential is not configured"
    return f"the action's URL cannot be used: {error}"
