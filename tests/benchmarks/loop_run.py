"""Measures the tool loop against the floor, A B A B, in this process: `loop_run WIRE PACE STREAMS TURNS ROUNDS`.

`STREAMS` turns at once until `TURNS` are over, `ROUNDS` times on each side.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.benchmarks.child import child, say
from tests.benchmarks.figures import loop_lag, peak_rss_mb, quantile
from tests.benchmarks.floor import floor_client, floor_turn
from tests.benchmarks.ours import SYSTEM, Ours, ours
from tests.benchmarks.transcript import CALLS, PIECES, answer, event_count

Turn = Callable[[int], Awaitable[bool]]


async def at_once(turn: Turn, streams: int, turns: int, stagger_s: float = 0.0) -> list[bool]:
    """Keep `streams` turns going until there were `turns`."""
    numbers = iter(range(1, turns + 1))
    wholes: list[bool] = []

    async def work(worker: int) -> None:
        await asyncio.sleep(worker * stagger_s)
        wholes.extend([await turn(number) for number in numbers])

    async with asyncio.TaskGroup() as group:
        for worker in range(streams):
            group.create_task(work(worker))
    return wholes


async def measured(
    turn: Turn, streams: int, turns: int, stagger_s: float = 0.0
) -> dict[str, object]:
    """CPU and wall in seconds per turn, lags, and whether all were whole."""
    async with loop_lag() as lags:
        cpu, wall = time.process_time(), time.perf_counter()
        wholes = await at_once(turn, streams, turns, stagger_s)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return {
        "cpu_s": cpu / turns,
        "wall_s": wall,
        "lag_p99_s": quantile(lags, 0.99) if lags else 0.0,
        "whole": len(wholes) == turns and all(wholes),
    }


def our_turn(own: Ours) -> Turn:
    """A turn of ours, and whether it is whole."""

    async def turn(number: int) -> bool:
        talk = await own.turn(number)
        return talk.text == answer(number) and sum(o.record.ok for o in talk.outcomes) == CALLS

    return turn


async def run(wire: str, pace_ms: int, streams: int, turns: int, rounds: int) -> object:
    results: dict[str, list[object]] = {"ours": [], "floor": []}
    with tempfile.TemporaryDirectory() as folder:
        async with child("model_process") as model, floor_client() as client:
            url = f"{model.ready['url']}/pace/{pace_ms}"
            async with ours(wire, url, Path(folder)) as own:
                tools = [{"name": s.name, "parameters": s.input_schema} for s in own.specs]

                async def floor(number: int) -> bool:
                    found = await floor_turn(client, wire, url, tools, SYSTEM, number)
                    return found == (answer(number), PIECES, CALLS)

                warm = streams if pace_ms == 0 else 1
                stagger_s = pace_ms * event_count(wire) / 1000 / streams
                await at_once(our_turn(own), warm, warm)
                await at_once(floor, warm, warm)
                for _ in range(rounds):
                    results["floor"].append(await measured(floor, streams, turns, stagger_s))
                    results["ours"].append(await measured(our_turn(own), streams, turns, stagger_s))
    return results


async def ours_alone(wire: str, pace_ms: int, streams: int) -> object:
    """One wave of turns of ours, in a process that has seen nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        async with child("model_process") as model:
            url = f"{model.ready['url']}/pace/{pace_ms}"
            async with ours(wire, url, Path(folder)) as own:
                await at_once(our_turn(own), 1, 1)
                found = await measured(our_turn(own), streams, streams, 2.0 / streams)
    return {**found, "rss_mb": peak_rss_mb()}


if __name__ == "__main__":
    wire, *numbers = sys.argv[1:]
    figures = [int(each) for each in numbers]
    work = run(wire, *figures) if len(figures) == 4 else ours_alone(wire, *figures)
    say(asyncio.run(work))
