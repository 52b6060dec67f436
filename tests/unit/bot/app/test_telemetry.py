"""`[otel]`: which addresses and headers are refused."""

import pytest
from pydantic import ValidationError

from bot.settings.model import Settings

SET = {"endpoint": "http://collector.example:4318", "headers": {"x-key": "collector-key-1"}}


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
def test_an_invalid_collector_address_is_refused(endpoint: str) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"otel": {"endpoint": endpoint}})


@pytest.mark.parametrize("name", ["a b", "x\r\nhost", "", "ü"])
def test_an_invalid_header_name_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"otel": {**SET, "headers": {name: "v"}}})


def test_a_header_of_the_collector_is_a_secret() -> None:
    settings = Settings.model_validate({"otel": SET})

    assert "collector-key-1" in settings.secrets()
    assert "collector-key-1" not in repr(settings)
