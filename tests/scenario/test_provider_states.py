"""A provider that is left alone is shown so in Slack, over HTTP and on the command line."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from bot.cli.main import main
from bot.demo.workspace.seeds import CHECKOUT, RESPONDER
from tests.fakes.model_server import Failure, ModelServer, Recorded, Round
from tests.fixtures_service import INGEST_TOKEN, Start, stage
from tests.plain_logging import logging_put_back

__all__ = ["stage"]

BUSY = Failure(429, "slow down", headers={"retry-after": "600", "x-should-retry": "false"})
TOML = """
[http]
port = {port}
api_token = "{token}"
[database]
url = "sqlite+aiosqlite:///{folder}/other.db"
[llm]
default_provider = "anthropic"
fallback_providers = ["triage"]
[llm.providers.anthropic]
api_key = "k"
model = "claude-sonnet-5-5"
"""


def busy(_request: Recorded) -> Round:
    return Round(failure=BUSY)


def kortex_providers(config: Path, *options: str) -> str:
    """What the command prints, in a process of its own."""
    command = [sys.executable, "-m", "bot", "providers", "--config", str(config), *options]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=90).stdout


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "kortex.toml"


async def test_a_rate_limited_provider_is_shown_until_it_is_asked_again(
    stage: Start, config: Path
) -> None:
    async with ModelServer(busy) as other:
        anthropic = {"api_key": "k", "base_url": other.url, "model": "m"}
        llm = {
            "default_provider": "anthropic",
            "fallback_providers": ["openai"],
            "providers": {"anthropic": anthropic},
        }
        async with stage([Round(text=("It is fine.",))] * 2, {"llm": llm}) as running:
            await running.answered("@kortex why?")
            await running.answered("@kortex and now?")
            ack = await running.workspace.command(RESPONDER, CHECKOUT, "providers")
            port = running.service.http_port
            async with aiohttp.ClientSession() as session:
                url = f"http://127.0.0.1:{port}/api/v1/llm/providers"
                refused = await session.get(url)
                told = await session.get(url, headers={"authorization": f"Bearer {INGEST_TOKEN}"})
                body = await told.json()
            text = TOML.format(port=port, token=INGEST_TOKEN, folder=config.parent)
            await asyncio.to_thread(config.write_text, text)
            printed = await asyncio.to_thread(kortex_providers, config, "--json")

    assert len(other.requests) == 1
    assert "anthropic: not available, rate limited, not asked for" in str(
        (ack.body or {}).get("text")
    )
    assert refused.status == 401
    rows = {row["name"]: row for row in body["providers"]}
    assert (rows["anthropic"]["circuit"], rows["anthropic"]["turn"]) == ("open", 1)
    assert 500 < rows["anthropic"]["retry_in_s"] <= 600
    assert (rows["openai"]["available"], rows["openai"]["answered"]) == (True, True)
    assert not rows["anthropic"]["answered"]
    shown = json.loads(printed)
    assert shown["live"]
    assert {row["name"]: row["circuit"] for row in shown["providers"]}["anthropic"] == "open"


def test_without_a_running_service_the_configured_providers_are_shown(
    config: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("_nothing_blocks_the_loop").deactivate()  # the command's own loop
    config.write_text(TOML.format(port=9, token="t", folder=config.parent))
    with logging_put_back(), pytest.raises(SystemExit):
        main(["providers", "--config", str(config)])
    shown = capsys.readouterr().out
    assert "ok  anthropic  configured, asked first, claude-sonnet-5-5" in shown
    assert "koder-ai" not in shown  # there is no such model yet
    assert "No running service answered" in shown
