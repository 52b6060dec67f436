"""Measures the whole bot in this process; Slack, the model and Loki are processes of their own.

`bot_run PACE_MS STREAMS TURNS ROUNDS [SPEED]`. With rounds, unlimited rates and the floor in
between, A B A B; with `SPEED`, Slack's real limits with both sides' clocks that much faster.
"""

import asyncio
import gc
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from bot.app.start import serving
from bot.app.stores import open_redactor
from bot.settings.model import Settings
from bot.settings.reading import parse
from bot.slack.delivery.pacing import Rates
from bot.telemetry import logs
from tests.benchmarks.child import Child, child, say
from tests.benchmarks.figures import loop_lag, peak_rss_mb, quantile
from tests.benchmarks.floor import floor_client, floor_turn
from tests.benchmarks.loop_run import measured
from tests.benchmarks.minimal import shown
from tests.benchmarks.ours import SYSTEM
from tests.benchmarks.transcript import CALLS, PIECES, answer, event_count
from tests.fixtures_slack import faster

CONFIGURATION = """
[slack]
stream = "edit"
mode = "http"
bot_token = "${BOT_TOKEN}"
signing_secret = "${SIGNING_SECRET}"
api_base_url = "${API_BASE_URL}"
[http]
port = 0
[database]
url = "sqlite+aiosqlite:///${FOLDER}/kortex.db"
[llm]
default_provider = "openai"
first_look = false
[llm.providers.openai]
api_key = "sk-benchmark-key"
base_url = "${MODEL}"
model = "bench-model"
[observe.logs]
kind = "loki"
url = "${LOKI}"
[[channels]]
match = "incident-*"
products = ["checkout"]
"""
WIRE = "openai"
IDLE_TURNS = 40
IDLE_PACE_MS = 1


def settings_for(folder: str, model: Child, slack: Child, pace_ms: int, more: str = "") -> Settings:
    """The bot's configuration against those processes, and further tables."""
    url = model.ready["url"]
    values = {
        "FOLDER": folder,
        "MODEL": f"{url}/pace/{pace_ms}",
        "LOKI": url,
        "BOT_TOKEN": slack.ready["bot_token"],
        "SIGNING_SECRET": slack.ready["signing_secret"],
        "API_BASE_URL": slack.ready["api_base_url"],
    }
    return parse(CONFIGURATION + more, "benchmark.toml", values)


@asynccontextmanager
async def bot(model: Child, slack: Child, pace_ms: int, rates: Rates) -> AsyncIterator[None]:
    """The whole bot, on a fresh database, receiving signed HTTP events."""
    with tempfile.TemporaryDirectory() as folder:
        settings = settings_for(folder, model, slack, pace_ms)
        logs.configure(open_redactor(settings), level="ERROR")
        async with bot_of(settings, slack, rates):
            yield


@asynccontextmanager
async def bot_of(settings: Settings, slack: Child, rates: Rates) -> AsyncIterator[None]:
    """The same by settings of its own."""
    # The one before left its engine's, which is shut down.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(serving(settings, rates))
        gc.freeze()
        own = f"http://127.0.0.1:{service.http_port}/slack/events"
        floor = await stack.enter_async_context(child("ack_process"))
        await slack.call("deliver_to", url=own, floor=floor.ready["url"])
        yield


async def bot_load(
    model: Child, slack: Child, streams: int, turns: int, stagger_s: float, thread: str = ""
) -> Any:
    """One load on a running bot, and what it cost here. All in the `thread` of that name."""
    await model.call("first_text")
    async with loop_lag() as lags:
        cpu = time.process_time()
        found = await slack.call(
            "load",
            streams=streams,
            turns=turns,
            stagger_s=stagger_s,
            timeout_s=800.0,
            thread=thread,
        )
        cpu = time.process_time() - cpu
    sent = await model.call("first_text")
    edits = [found["first_text"][turn] - at for turn, at in sent.items()]
    finals = [found["done"][turn] - found["asked"][turn] for turn in found["done"]]
    return {
        "cpu_s": cpu / turns,
        "wall_s": found["wall_s"],
        "lag_p99_s": quantile(lags, 0.99),
        "first_edit_p50_s": quantile(edits, 0.5),
        "first_edit_p95_s": quantile(edits, 0.95),
        "ack_p50_s": quantile(found["acks_s"], 0.5),
        "ack_p99_s": quantile(found["acks_s"], 0.99),
        "floor_ack_p99_s": quantile(found["floor_acks_s"], 0.99),
        "turn_p50_s": quantile(finals, 0.5),
        "turn_p95_s": quantile(finals, 0.95),
        "slack_calls": found["calls"],
        "answered": len(found["done"]),
        "late": found["late"],
        "unacknowledged": found["unacknowledged"],
        "limited": found["limited"],
        "errors": found["errors"],
        "wrong": found["wrong"],
        "whole": len(found["done"]) == turns and not found["wrong"],
        "rss_mb": peak_rss_mb(),
    }


async def against_the_floor(pace_ms: int, streams: int, turns: int, rounds: int) -> Any:
    """The floor with Slack's traffic and the whole bot in turn; an idle bot's acknowledgements last.

    No floor when `rounds` is 0, then one load of the bot.
    """
    results: dict[str, list[Any]] = {"bot": [], "floor": [], "idle": []}
    stagger_s = pace_ms * event_count(WIRE) / 1000 / streams
    async with child("model_process") as model, child("slack_process", "unlimited", 1) as slack:
        url = f"{model.ready['url']}/pace/{pace_ms}"

        async def floor_load() -> Any:
            async with floor_client() as client:

                async def turn(number: int) -> bool:
                    async with shown(client, slack.ready, number):
                        found = await floor_turn(client, WIRE, url, [], SYSTEM, number)
                    return found == (answer(number), PIECES, CALLS)

                await turn(1)
                return await measured(turn, streams, turns, stagger_s)

        for _ in range(max(rounds, 1)):
            if rounds:
                results["floor"].append(await floor_load())
            async with bot(model, slack, pace_ms, Rates.unlimited()):
                await bot_load(model, slack, 1, 1, 0.0)
                results["bot"].append(await bot_load(model, slack, streams, turns, stagger_s))
        async with bot(model, slack, IDLE_PACE_MS, Rates.unlimited()):
            results["idle"].append(await bot_load(model, slack, 1, IDLE_TURNS, 0.0))
    return results


async def within_limits(pace_ms: int, streams: int, turns: int, speed: int) -> Any:
    """Slack's real limits, everything that waits for them `speed` times as fast."""
    rates = faster(speed)
    async with (
        child("model_process") as model,
        child("slack_process", "real", speed) as slack,
        bot(model, slack, pace_ms, rates),
    ):
        return await bot_load(model, slack, streams, turns, 0.0)


if __name__ == "__main__":
    pace, streams, turns, rounds, *speeds = map(int, sys.argv[1:])
    work = (
        within_limits(pace, streams, turns, speeds[0])
        if speeds
        else against_the_floor(pace, streams, turns, rounds)
    )
    say(asyncio.run(work))
