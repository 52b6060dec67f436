"""OTLP/HTTP exporters of OpenTelemetry's SDK, and a check that their collector answers.

The exporters send with `requests` from threads of their own. Their session asks the egress guard
before each request, follows no redirect, and reads neither proxies nor logins from the environment.
"""

import socket
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import requests
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from requests.adapters import HTTPAdapter

from adapters.http.client import http_client
from adapters.http.egress import check_egress, check_notation, check_resolved, plain_host
from adapters.http.errors import check_status, mapped_errors
from adapters.http.tls import usual_trust

SEND_TIMEOUT_S: Final = 10.0  # the specification's default, OTEL_EXPORTER_OTLP_TIMEOUT
TRACES: Final = "/v1/traces"
METRICS: Final = "/v1/metrics"


class Collector:
    """One collector, by its base address (`http://collector:4318`)."""

    def __init__(self, endpoint: str, headers: Mapping[str, str]) -> None:
        """`headers` hold credentials."""
        self._endpoint = endpoint.rstrip("/")
        self._headers = dict(headers)

    def spans(self) -> OTLPSpanExporter:
        """Sends spans; retries 408, 429 and 5xx until `SEND_TIMEOUT_S`. Reads certificates."""
        return OTLPSpanExporter(
            self._endpoint + TRACES,
            headers=self._headers,
            timeout=SEND_TIMEOUT_S,
            compression=Compression.NoCompression,
            session=_session(),
        )

    def metrics(self) -> OTLPMetricExporter:
        """Sends metrics in the same way."""
        return OTLPMetricExporter(
            self._endpoint + METRICS,
            headers=self._headers,
            timeout=SEND_TIMEOUT_S,
            compression=Compression.NoCompression,
            session=_session(),
        )

    async def reach(self) -> None:
        """Send an export of no spans, through our own HTTP client. Raises AdapterError."""
        client = http_client(headers=self._headers, read_s=SEND_TIMEOUT_S)
        try:
            with mapped_errors("the collector"):
                request = client.build_request(
                    "POST",
                    self._endpoint + TRACES,
                    content=b"",
                    headers={"content-type": "application/x-protobuf"},
                )
                response = await client.send(request)
                try:
                    check_status(response)
                finally:
                    await response.aclose()
        finally:
            await client.aclose()


class _GuardedAdapter(HTTPAdapter):
    """Asks the egress guard before each request; trusts the same authorities as every other client."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, ssl_context=usual_trust(), **kwargs)

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> Any:
        parts = urlsplit(request.url)
        host = plain_host(str(parts.hostname))
        check_notation(host)
        check_egress(host)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise requests.ConnectionError(error, request=request) from error
        for each in found:
            check_resolved(host, str(each[4][0]))
        return super().send(request, *args, **kwargs)


def _session() -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    session.max_redirects = 0
    adapter = _GuardedAdapter()
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    return session
