"""Tens of thousands of unlike lines are folded in a time that grows with their number alone."""

import random
import time

from tools.analysis.log_changes import Sample, patterns_of
from tools.capabilities import LogLine

DICE = random.Random(1)
WORDS = ["".join(DICE.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(500)]


def lines(number: int) -> list[LogLine]:
    return [
        LogLine(
            n * 10**9, "error", "h1", f"{' '.join(DICE.choices(WORDS, k=18))} user={n} took {n} ms"
        )
        for n in range(number, 0, -1)
    ]


def cost_s(number: int) -> float:
    late, early = (
        Sample({"cart": of}, {"cart": number}, 0.0, 1e6) for of in (lines(number), lines(number))
    )
    begun = time.process_time()
    patterns_of(late, early, products=[f"shop-{n}" for n in range(50)])
    return time.process_time() - begun


def test_twice_the_lines_take_twice_the_time() -> None:
    cost_s(200)  # warm
    few, many = min(cost_s(500), cost_s(500)), min(cost_s(2_000), cost_s(2_000))

    assert many / few < 4 * 1.8
