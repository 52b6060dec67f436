"""The SDK's HTTP client over ours: what confines every request of Kortex confines these too.

The SDK speaks httpx2; the requests are sent by a client of `adapters.http`.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import httpx
import httpx2
from mcp_types import INTERNAL_ERROR

from adapters.errors import BadAnswer, Refused
from adapters.http.errors import mapped_errors
from tools.outside_json import in_whole_characters

MAX_BODY_BYTES: Final = 1024 * 1024
_HALF_CHARACTER: Final = rb"\ud"
_END_S: Final = 2.0  # for the end of a session, which is a courtesy
# The SDK takes other statuses for another revision of the protocol, or says them itself.
_REFUSED: Final = frozenset({401, 403, 429})


class ConfinedTransport(httpx2.AsyncBaseTransport):
    """Sends through `client`, which its owner closes. Raises AdapterError."""

    def __init__(self, client: httpx.AsyncClient, what: str) -> None:
        self._client = client
        self._what = what

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """One request, without following where it is sent on to."""
        sent = self._client.build_request(
            request.method,
            str(request.url),
            headers={k: v for k, v in request.headers.items() if k != "host"},
            content=await request.aread(),
        )
        with mapped_errors(self._what):
            async with asyncio.timeout(_END_S if request.method == "DELETE" else None):
                response = await self._client.send(sent, stream=True)
        status = response.status_code
        if status in _REFUSED or status >= 500:
            await response.aclose()
            return _told(status, f"{self._what} answered {status}")
        if 300 <= status < 400:
            await response.aclose()
            raise Refused(f"{self._what} answered a redirect, which is not followed")
        return httpx2.Response(
            status,
            headers=list(response.headers.multi_items()),
            stream=_Body(response, self._what),
        )


def _told(status: int, words: str) -> httpx2.Response:
    """The failure of one request, as the SDK knows one: what else is under way goes on."""
    error = {"code": INTERNAL_ERROR, "message": words}
    return httpx2.Response(status, json={"jsonrpc": "2.0", "id": None, "error": error})


class _Body(httpx2.AsyncByteStream):
    """Bytes as they come. Events are bounded one by one by the SDK, everything else as a whole."""

    def __init__(self, response: httpx.Response, what: str) -> None:
        self._response = response
        self._what = what
        self._events = response.headers.get("content-type", "").startswith("text/event-stream")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        whole = b""
        with mapped_errors(self._what):
            async for part in self._response.aiter_raw():
                if self._events:
                    yield part
                    continue
                whole += part
                if len(whole) > MAX_BODY_BYTES:
                    raise BadAnswer(f"{self._what} answered more than {MAX_BODY_BYTES} bytes")
        if _HALF_CHARACTER in whole.lower():  # which the SDK does not read
            whole = in_whole_characters(whole) or whole
        if whole:
            yield whole

    async def aclose(self) -> None:
        await self._response.aclose()


def sdk_client(client: httpx.AsyncClient, what: str) -> httpx2.AsyncClient:
    """The SDK's client, with every request sent through ours."""
    return httpx2.AsyncClient(
        transport=ConfinedTransport(client, what),
        headers={"accept-encoding": "identity"},
        timeout=None,
        trust_env=False,
        follow_redirects=False,
    )
