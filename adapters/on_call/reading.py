"""GET JSON from one host within a time limit, over a connection of its own.

Rotas are read seconds apart at least, and come and go with the configuration: a shared client would
hold an expired connection, and need an owner to close it.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

import httpx
from pydantic import JsonValue, TypeAdapter, ValidationError

from adapters.errors import BadAnswer
from adapters.http.body import read_capped
from adapters.http.client import http_client
from adapters.http.errors import check_status, mapped_errors
from adapters.http.transport import Route
from tools.outside_json import parse

MAX_ANSWER_BYTES: Final = 1_048_576
_BODY: Final[TypeAdapter[JsonValue]] = TypeAdapter(JsonValue)


@asynccontextmanager
async def reading(url: str, timeout_s: float, route: Route) -> AsyncIterator[httpx.AsyncClient]:
    """A client that reaches the URL's host only, for `timeout_s` in all. Raises AdapterError."""
    host = urlsplit(url).hostname or ""
    with mapped_errors(host):
        async with asyncio.timeout(timeout_s):
            async with http_client(
                headers=dict(route.headers),
                connect_s=timeout_s,
                read_s=timeout_s,
                allowed_hosts=frozenset({host}),
                tls=route.tls,
                proxy=route.proxy,
            ) as client:
                yield client


async def get_json(
    client: httpx.AsyncClient,
    url: str,
    headers: Mapping[str, str],
    params: Mapping[str, str | int | Sequence[str]] | None = None,
) -> JsonValue:
    """The whole answer. Raises AdapterError, and foreign errors for `reading` to map."""
    request = client.build_request("GET", url, headers=headers, params=params)
    response = await client.send(request, stream=True)
    try:
        check_status(response)
        body = await read_capped(response, MAX_ANSWER_BYTES)
    finally:
        await response.aclose()
    try:
        return parse(_BODY, body)
    except ValidationError as error:
        raise BadAnswer(f"{request.url.host} did not answer in JSON") from error
