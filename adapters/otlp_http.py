"""A collector of traces and metrics: OTLP over HTTP, through the one HTTP factory.

OpenTelemetry's own exporter speaks through another client, past the egress guard
(docs/adr/0024-traces.md).
"""

from collections.abc import Mapping
from typing import Final

from adapters.address import url_of
from adapters.http import check_status, http_client, mapped_errors, read_capped

SEND_TIMEOUT_S: Final = 10.0  # the specification's default, OTEL_EXPORTER_OTLP_TIMEOUT
MAX_ANSWER_BYTES: Final = 65_536  # holds what was not taken, in a few words


class OtlpHttp:
    """One collector, by its base address (`http://collector:4318`)."""

    def __init__(self, endpoint: str, headers: Mapping[str, str]) -> None:
        """Raises ValueError for an address without a host."""
        host = url_of(endpoint).host
        if not host:
            raise ValueError("needs an address such as http://collector:4318")
        self._endpoint = endpoint.rstrip("/")
        self._client = http_client(
            headers=headers,
            read_s=SEND_TIMEOUT_S,
            max_connections=2,
            allowed_hosts=frozenset({host}),
        )

    async def send(self, path: str, body: bytes) -> bytes:
        """Post one request to `/v1/traces` or `/v1/metrics`; the answer. Raises AdapterError."""
        with mapped_errors("the collector"):
            request = self._client.build_request(
                "POST",
                self._endpoint + path,
                content=body,
                headers={"content-type": "application/x-protobuf"},
                timeout=SEND_TIMEOUT_S,
            )
            response = await self._client.send(request)
            try:
                check_status(response)
                return await read_capped(response, MAX_ANSWER_BYTES)
            finally:
                await response.aclose()

    async def aclose(self) -> None:
        """Close its connections."""
        await self._client.aclose()
