"""The address of a backend, with what people put into it."""

from contextlib import AsyncExitStack

import pytest
from pydantic import SecretStr

from bot.app.backend_selection import make_observed
from bot.app.http_access import backend_client
from bot.settings.access import AccessSettings
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from tests.fakes.capabilities import FakeClock, FakeDeploys, FakeHistory


@pytest.mark.parametrize(
    ("url", "base", "header"),
    [
        ("http://loki:3100/", "http://loki:3100", None),
        (
            "https://kortex:p%40ss@loki.example/loki",
            "https://loki.example/loki",
            "Basic a29ydGV4OnBAc3M=",
        ),
        ("https://kortex@loki.example", "https://loki.example", "Basic a29ydGV4Og=="),
        ("http://u:p@[::1]:9090", "http://[::1]:9090", "Basic dTpw"),
    ],
)
async def test_name_and_password_become_credentials(
    url: str, base: str, header: str | None
) -> None:
    async with AsyncExitStack() as stack:
        client = backend_client(url, AccessSettings(), "observe.logs.url", stack)
        assert str(client.base_url).rstrip("/") == base
        assert client.headers.get("authorization") == header


@pytest.mark.parametrize(
    ("url", "token"),
    [
        ("https://u:p@loki", "token"), ("loki:3100", ""), ("", ""), ("http://", ""),
        ("http://loki:port", ""), ("ftp://loki", ""), ("http://[::1", ""),
    ],
)  # fmt: skip
async def test_an_invalid_address_is_named(url: str, token: str) -> None:
    async with AsyncExitStack() as stack:
        access = AccessSettings(token=SecretStr(token))
        with pytest.raises(ConfigurationError, match=r"observe\.logs\.url"):
            backend_client(url, access, "observe.logs.url", stack)


@pytest.mark.parametrize(
    "selector", ["x", "{}", "{nonsense", '{app="x"}', '{a="$product",b="$product"}']
)
async def test_an_invalid_selector_is_named(selector: str) -> None:
    logs = {"kind": "loki", "url": "http://loki:3100", "selector": selector}
    settings = Settings.model_validate({"observe": {"logs": logs}})
    async with AsyncExitStack() as stack:
        with pytest.raises(ConfigurationError, match=r"observe\.logs\.selector"):
            make_observed(settings, FakeClock(), FakeDeploys(), FakeHistory(), stack)
