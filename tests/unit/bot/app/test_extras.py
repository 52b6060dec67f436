"""What needs an extra names it where the extra is not installed."""

import sys
from contextlib import AsyncExitStack
from typing import Any

import pytest

from adapters.llm.config import ProviderConfig
from adapters.llm.registry import create
from bot.app.backend_kinds import open_logs
from bot.app.http_api import checked_claims
from bot.app.telemetry import open_telemetry
from bot.cli.check.storage import check_sinks
from bot.settings.http import OidcSettings
from bot.settings.model import Settings
from bot.settings.otel import OtelSettings
from bot.settings.reading import ConfigurationError
from bot.telemetry.metrics import Metrics
from tests.fakes.redactor import FakeRedactor


def without(monkeypatch: pytest.MonkeyPatch, library: str, *importers: str) -> None:
    """As in an installation without the library."""
    for name in importers:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, library, None)


async def test_a_nats_server_without_the_client_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without(monkeypatch, "nats.errors", "adapters.audit.nats")
    settings = Settings.model_validate({"audit": {"events_nats": "nats://127.0.0.1:4222"}})

    (finding,) = await check_sinks(settings, 5.0)

    assert not finding.ok
    assert "kortex[nats]" in finding.detail


async def test_a_collector_without_the_sdk_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "opentelemetry.exporter.otlp.proto.http", "adapters.otel.exporters")
    to = OtelSettings(endpoint="http://127.0.0.1:4318")
    async with AsyncExitStack() as stack:
        open_telemetry(OtelSettings(), FakeRedactor(), Metrics(), stack)
        with pytest.raises(ConfigurationError, match=r"kortex\[otel\]"):
            open_telemetry(to, FakeRedactor(), Metrics(), stack)


def test_an_identity_provider_without_pyjwt_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without(monkeypatch, "jwt", "adapters.oidc.tokens")
    oidc = OidcSettings(issuer="https://id.example", audience="kortex")

    with pytest.raises(ConfigurationError, match=r"kortex\[oidc\]"):
        checked_claims(oidc)


async def test_cloudwatch_without_botocore_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "botocore.auth", "adapters.observe.aws", "adapters.aws.signing")
    settings = Settings.model_validate(
        {"observe": {"logs": {"kind": "cloudwatch", "region": "eu-central-1"}}}
    )
    async with AsyncExitStack() as stack:
        with pytest.raises(ConfigurationError, match=r"observe\.logs\.kind: .*kortex\[aws\]"):
            open_logs(settings.observe.logs, (), "observe.logs", stack)


@pytest.mark.parametrize("how", [{"api_key": "k"}, {"extra": {"region": "eu-central-1"}}])
def test_bedrock_without_botocore_is_unavailable_and_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    without(monkeypatch, "botocore")

    assert "kortex[aws]" in str(create(ProviderConfig("bedrock", **how)).unavailable_reason)
