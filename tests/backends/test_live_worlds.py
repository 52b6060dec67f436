"""What Kortex answers about shops of foreign names, on a real VictoriaMetrics and without settings.

Only the backend's address is configured. Products may be named or not.
"""

import asyncio
import json
import time
import urllib.request
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest
from pydantic import JsonValue

from bot.cli.ask import answer_here
from bot.settings.reading import load
from bot.store import schema
from tests.backends.live_worlds import WORLDS, LiveWorld, batches
from tests.backends.metric_servers import victoria_metrics

pytestmark = [pytest.mark.backends, pytest.mark.may_block_the_loop]


@cache
def made(name: str) -> LiveWorld:
    return WORLDS[name](int(time.time()) // 60 * 60)


def asked(folder: Path, world: LiveWorld, products: Sequence[str] = ()) -> Mapping[str, JsonValue]:
    with victoria_metrics(folder) as url:
        for body in batches(world.lines):
            urllib.request.urlopen(f"{url}/api/v1/import", body, timeout=60).close()
        urllib.request.urlopen(f"{url}/internal/force_flush", timeout=60).close()
        config = folder / "kortex.toml"
        config.write_text(
            f'[database]\nurl = "sqlite:///{folder}/kortex.db"\n'
            '[llm]\ndefault_provider = "triage"\n'
            f'[observe.metrics]\nkind = "prometheus"\nurl = "{url}"\n'
            f'[[channels]]\nmatch = "*"\nproducts = {json.dumps(list(products))}\n'
        )
        return asyncio.run(_answer(config, world.asked))


async def _answer(config: Path, question: str) -> Mapping[str, JsonValue]:
    settings = load(config)
    await schema.migrate(settings.database.url.get_secret_value())
    return await answer_here(settings, question, "incident-shop", lambda _: None)


def suspects_of(answer: Mapping[str, JsonValue]) -> Sequence[str]:
    suspects = answer["suspects"]
    assert isinstance(suspects, list)
    return [str(one["product"]) for one in suspects if isinstance(one, dict)]


@pytest.mark.parametrize("name", WORLDS)
def test_answer_without_settings_names_the_fault_or_the_change(tmp_path: Path, name: str) -> None:
    world = made(name)
    answer = asked(tmp_path, world)

    assert world.helps(str(answer["verdict"]), suspects_of(answer), str(answer["answer"])), answer


@pytest.mark.parametrize("name", [name for name in WORLDS if name != "daily-peak"])
def test_a_failure_is_never_called_healthy(tmp_path: Path, name: str) -> None:
    assert asked(tmp_path, made(name))["verdict"] != "healthy"
