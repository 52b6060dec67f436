"""Figures: medians, quantiles, memory, loop lag, and how they are printed."""

import asyncio
import math
import statistics
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

LAG_PROBE_S = 0.01


def quantile(values: Sequence[float], q: float) -> float:
    """The smallest value that at least that share does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)]


def spread(values: Sequence[float], digits: int = 2) -> str:
    """`0.41 (0.39-0.45)`: median, least, most."""
    parts = (statistics.median(values), min(values), max(values))
    middle, low, high = (f"{each:.{digits}f}" for each in parts)
    return f"{middle} ({low}-{high})"


def ratios(ours: Sequence[float], baseline: Sequence[float]) -> list[float]:
    """Pair by pair, in the order in which they were measured."""
    return [a / b for a, b in zip(ours, baseline, strict=True)]


def show(title: str, **figures: str) -> None:
    """One line per figure, to be read with `pytest -s`."""
    lines = [f"  {name.replace('_', ' '):<44} {value}" for name, value in figures.items()]
    sys.stdout.write("\n".join(["", title, *lines, ""]))


def peak_rss_mb() -> float:
    """The most memory this process had resident, in MB (10^6 bytes)."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError("no VmHWM in /proc/self/status")


@asynccontextmanager
async def loop_lag() -> AsyncIterator[list[float]]:
    """How late the loop was, in seconds, probed a hundred times a second."""
    lags: list[float] = []

    async def probe() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(LAG_PROBE_S)
            lags.append(time.perf_counter() - before - LAG_PROBE_S)

    probing = asyncio.create_task(probe())
    try:
        yield lags
    finally:
        probing.cancel()


def ratio_of(name: str, ours: Sequence[Any], baseline: Sequence[Any]) -> str:
    """Of one figure of the runs, beside that of the baseline's."""
    return spread(ratios([run[name] for run in ours], [run[name] for run in baseline]))
