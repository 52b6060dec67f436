"""Measures turns in a thread of many turns, in one of some, and in new ones, in turn.

`thread_run sqlite|postgresql TURNS ROUNDS`. The bot is in this process; PostgreSQL, Slack, the model
and Loki are others.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.bot_run import bot_load
from tests.benchmarks.child import Child, child, say
from tests.benchmarks.growth_run import started
from tests.fixtures_database import new_database

MEASURED: Final = 5  # at a time: the speed of a shared machine varies
FEW: Final = 30
THREADS_OF_FEW: Final = 6
# The engine is in a hurry for a minute, the log catches up, the audit log is read once.
SETTLE_S: Final = 65.0


async def _ask(slack: Child, turns: int, thread: str) -> None:
    asked = {"streams": 1, "turns": turns, "stagger_s": 0.0, "timeout_s": 600.0}
    found = await slack.call("load", **asked, thread=thread)
    assert len(found["done"]) == turns


async def main(kind: str, turns: int, rounds: int) -> Mapping[str, Any]:
    """Each side's loads; A B C, C B A."""
    found: dict[str, list[Any]] = {"many": [], "few": [], "new": []}
    with tempfile.TemporaryDirectory() as folder:
        async with (
            child("model_process") as model,
            child("slack_process", "unlimited", 1) as slack,
            new_database(kind, Path(folder)) as url,
        ):
            at = (Path(folder), model, slack, url)
            async with started(*at, pace_ms=0):
                await _ask(slack, turns, "many")
                for number in range(THREADS_OF_FEW):
                    await _ask(slack, FEW, f"few {number}")
            async with started(*at):
                await asyncio.sleep(SETTLE_S)
                for number in range(rounds):
                    threads = {"many": "many", "few": f"few {number % THREADS_OF_FEW}", "new": ""}
                    for side in ([*threads], [*threads][::-1])[number % 2]:
                        load = await bot_load(model, slack, 1, MEASURED, 0.0, thread=threads[side])
                        found[side].append(load)
    return found


if __name__ == "__main__":
    sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until it ends
    kind, turns, rounds = sys.argv[1], *map(int, sys.argv[2:])
    say(asyncio.run(main(kind, turns, rounds)))
