"""Without an address nothing of the extra is needed; with one, what is missing is named."""

import sys
from contextlib import AsyncExitStack

import pytest
from pydantic import ValidationError

from bot.settings.model import Settings
from bot.settings.otel import OtelSettings
from bot.settings.reading import ConfigurationError
from bot.telemetry.metrics import Metrics
from bot.wiring.telemetry import open_telemetry
from tests.fakes.redactor import FakeRedactor

SET = {"endpoint": "http://collector.example:4318", "headers": {"x-key": "collector-key-1"}}


@pytest.fixture
def without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bot.telemetry.export", "bot.telemetry.otlp"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.trace.v1", None)


@pytest.mark.usefixtures("without_the_extra")
async def test_a_collector_without_the_extra_names_what_to_install() -> None:
    async with AsyncExitStack() as stack:
        assert open_telemetry(OtelSettings(), FakeRedactor(), Metrics(), stack)[1] == {}
        with pytest.raises(ConfigurationError, match=r"kortex\[otel\]"):
            open_telemetry(OtelSettings.model_validate(SET), FakeRedactor(), Metrics(), stack)


@pytest.mark.parametrize(
    "endpoint",
    [
        "collector:4318",
        "grpc://collector:4317",
        "http://",
        "http://user:pass@collector:4318",
        "http://c?a=1",
    ],
)
def test_an_address_that_is_no_collectors_is_refused(endpoint: str) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"otel": {"endpoint": endpoint}})


@pytest.mark.parametrize("name", ["a b", "x\r\nhost", "", "ü"])
def test_a_name_that_no_header_has_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"otel": {**SET, "headers": {name: "v"}}})


def test_what_is_sent_with_each_request_is_a_secret() -> None:
    settings = Settings.model_validate({"otel": SET})

    assert "collector-key-1" in settings.secrets()
    assert "collector-key-1" not in repr(settings)
