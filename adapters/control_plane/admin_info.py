"""What a product says of itself, asked of the control plane in the asker's name."""

import asyncio
from typing import Final

import httpx
from pydantic import JsonValue, TypeAdapter, ValidationError

from adapters.audit_identity import identity_headers
from adapters.control_plane.port import BadTemplate, fill
from adapters.http.client import answer_to
from adapters.http.errors import tool_errors
from tools.capabilities import CallContext
from tools.errors import InvalidArguments, UpstreamFailed

_MAX_BYTES: Final = 256 * 1024
_TIMEOUT_S: Final = 30.0  # the ceiling of a look-up; the runner cuts earlier
_MAX_WORDS: Final = 300
_ENVELOPE: Final = TypeAdapter(dict[str, JsonValue])


class HttpAdminInfo:
    """GETs `info_url` with the product filled in. The caller owns the client and its token."""

    def __init__(self, client: httpx.AsyncClient, info_url: str) -> None:
        self._client = client
        self._info_url = info_url

    async def info(self, product: str, call: CallContext) -> dict[str, JsonValue]:
        """Raises InvalidArguments (no such product), UpstreamFailed, CapabilityUnavailable."""
        try:
            url = fill(self._info_url, product)
        except BadTemplate as error:
            raise InvalidArguments(f"product: {error}") from error
        status, body = await self._get(url, call)
        if status in {404, 410}:
            raise InvalidArguments(f"product: the control plane knows no {product!r}")
        if not 200 <= status < 300:
            words = " ".join(body.decode("utf-8", "replace").split())[:_MAX_WORDS]
            raise UpstreamFailed(words or "no explanation", status)
        try:
            return _ENVELOPE.validate_json(body)
        except ValidationError as error:
            raise UpstreamFailed("not a JSON object", status) from error

    async def _get(self, url: str, call: CallContext) -> tuple[int, bytes]:
        headers = {"Accept": "application/json", **identity_headers(call)}
        with tool_errors("the control plane"):
            async with asyncio.timeout(_TIMEOUT_S):
                request = self._client.build_request("GET", url, headers=headers)
                response, body = await answer_to(self._client, request, _MAX_BYTES)
                return response.status_code, body
