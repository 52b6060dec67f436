"""`kortex check` calls no provider ready that did not answer it."""

import asyncio

import pytest

from adapters.llm.config import ProviderConfig
from adapters.llm.registry import create
from adapters.llm.triage.provider import Triage
from bot.cli.check import time_budget
from bot.cli.check.tools import check_providers
from tests.fakes.model_server import ModelServer, Round


def hosted(name: str, url: str, key: str = "k") -> ProviderConfig:
    return ProviderConfig(name, api_key=key, base_url=url, model="test-model")


async def test_check_asks_only_the_providers_in_the_order_for_one_word() -> None:
    async with ModelServer([Round(text=("ok",))]) as there, ModelServer([]) as unused:
        made = {
            "anthropic": create(hosted("anthropic", there.url)),
            "openai": create(hosted("openai", "http://127.0.0.1:9")),
            "nirmata": create(hosted("nirmata", unused.url)),
            "bedrock": create(hosted("bedrock", there.url, key="no\nkey")),
        }
        providers = {**made, "triage": Triage()}
        order = [providers[name] for name in ("anthropic", "openai", "bedrock", "triage")]
        found = {each.part: each for each in await check_providers(providers, order)}
        for name in providers.keys() - {"triage"}:
            await made[name].aclose()
    assert (found["provider anthropic"].ok, len(there.requests)) == (True, 1)
    assert not found["provider openai"].ok
    assert "unreachable" in found["provider openai"].detail
    assert (found["provider nirmata"].configured, unused.requests) == (False, [])
    assert "line break" in found["provider bedrock"].detail
    assert found["provider triage"].ok


async def test_check_does_not_wait_for_a_silent_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_budget, "PROBE_S", 0.05)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        provider = create(hosted("anthropic", f"http://127.0.0.1:{port}"))
        (found,) = await check_providers({"anthropic": provider}, [provider])
        await provider.aclose()
    assert (found.ok, "no answer within" in found.detail) == (False, True)
