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
