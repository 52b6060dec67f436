"""Where the audit log is sent over HTTP: events to a collector, checkpoints to an object store."""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

import orjson
from pydantic import JsonValue

from adapters.audit.event import cloud_event
from adapters.http.body import read_capped
from adapters.http.client import http_client
from adapters.http.errors import check_status, mapped_errors
from adapters.http.transport import Route

MAX_ANSWER_BYTES: Final = 4_096


class AuditHttp:
    """One address. `{size}` in it becomes the checkpoint's size, so that none overwrites another."""

    def __init__(self, url: str, route: Route) -> None:
        """Raises ValueError for an address without a host."""
        host = urlsplit(url).hostname
        if not host:
            raise ValueError("needs an address such as https://collector.example/events")
        self._url = url
        self._client = http_client(
            headers=dict(route.headers),
            connect_s=route.connect_s,
            read_s=route.read_s,
            allowed_hosts=frozenset({host}),
            tls=route.tls,
            proxy=route.proxy,
        )

    async def send_events(self, rows: Sequence[Mapping[str, JsonValue]]) -> None:
        """Post rows as a CloudEvents batch; the receiver drops what it has by id. Raises AdapterError."""
        body = orjson.dumps([cloud_event(row) for row in rows])
        await self._send("POST", self._url, body, "application/cloudevents-batch+json")

    async def put_checkpoint(self, size: int, line: str) -> None:
        """Store one checkpoint. Raises AdapterError."""
        url = self._url.replace("{size}", str(size))
        await self._send("PUT", url, f"{line}\n".encode(), "text/plain; charset=utf-8")

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _send(self, method: str, url: str, body: bytes, kind: str) -> None:
        with mapped_errors("where the audit log is sent"):
            request = self._client.build_request(
                method,
                url,
                content=body,
                headers={"content-type": kind},
            )
            response = await self._client.send(request, stream=True)
            try:
                check_status(response)
                await read_capped(response, MAX_ANSWER_BYTES)
            finally:
                await response.aclose()
