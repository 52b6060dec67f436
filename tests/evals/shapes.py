"""Eight unrelated series, of which at most one changes its shape: units, names and scales by chance.

An answer should not depend on any of them. `write_shapes` writes a pack of such cases.
"""

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final

NOW: Final = datetime(2026, 11, 20, 14, 0, tzinfo=UTC)
SET: Final = "shapes"
_DAY_S: Final = 86_400
_SYLLABLES: Final = ("ka", "lo", "mi", "ne", "pu", "ra", "si", "to", "ve", "zu", "bri", "dal")
_ENDS: Final = ("", "_now", "_p95", "_rate", "_level", "_ms", "_used")
_UNITS: Final = (None, None, "seconds", "bytes", "percent", "ratio", "widgets", "Count")
_QUESTIONS: Final = (
    "users say that something is off, what is it?",
    "is anything wrong?",
    "what is wrong since about 13:40 UTC?",
)
_LEAST_SIZE: Final = 8.0  # robust deviations
_MOST_SIZE: Final = 30.0

Points = list[tuple[float, float]]


@dataclass(frozen=True)
class _Quiet:
    """A series on which nothing happens: a level, noise, and perhaps a daily pattern."""

    points: Points
    deviation: float  # robust, of all of it
    every_s: int


def _quiet(by_chance: random.Random, spread: float | None = None) -> _Quiet:
    every_s = by_chance.choice((60, 300))
    level = 10 ** by_chance.uniform(-3, 9)
    noise = by_chance.uniform(0.01, 0.08) if spread is None else spread
    daily = by_chance.choice((0.0, 0.0, by_chance.uniform(0.1, 0.5))) if spread is None else 0.0
    peak = by_chance.uniform(0, _DAY_S)
    end = NOW.timestamp()
    begin = end - (26 if every_s == 60 else by_chance.choice((26, 50, 170))) * 3600
    points: Points = []
    at = begin
    while at <= end:
        rhythm = 1 + daily * math.cos(2 * math.pi * (at - peak) / _DAY_S)
        points.append((at, level * rhythm * (1 + by_chance.gauss(0, noise))))
        at += every_s
    values = [value for _, value in points]
    middle = median(values)
    return _Quiet(points, 1.4826 * median(abs(value - middle) for value in values), every_s)


def _changed(quiet: _Quiet, minutes: float, change: Callable[[float, float], float]) -> Points:
    """`change` is given the value, and the share of the time since the change began."""
    begin = NOW.timestamp() - minutes * 60
    return [
        (at, change(value, (at - begin) / (minutes * 60)) if at >= begin else value)
        for at, value in quiet.points
    ]


def _size(by_chance: random.Random, quiet: _Quiet) -> float:
    return by_chance.uniform(_LEAST_SIZE, _MOST_SIZE) * quiet.deviation


def _spike(by_chance: random.Random) -> Points:
    quiet = _quiet(by_chance)
    size, number = _size(by_chance, quiet), by_chance.randint(1, 3)
    first = len(quiet.points) - 1 - by_chance.randint(number, 900 // quiet.every_s)
    spiked = range(first, first + number)
    return [
        (at, value + size if place in spiked else value)
        for place, (at, value) in enumerate(quiet.points)
    ]


def _level_shift(by_chance: random.Random) -> Points:
    quiet = _quiet(by_chance)
    size = _size(by_chance, quiet)
    return _changed(quiet, by_chance.uniform(12, 28), lambda value, _: value + size)


def _drift(by_chance: random.Random) -> Points:
    quiet = _quiet(by_chance, spread=by_chance.uniform(0.01, 0.05))
    size = _size(by_chance, quiet)
    return _changed(quiet, by_chance.uniform(60, 360), lambda value, share: value + share * size)


def _drop(by_chance: random.Random) -> Points:
    quiet = _quiet(by_chance, spread=by_chance.uniform(0.01, 0.04))
    kept = by_chance.choice((0.0, 0.1, 0.5))
    return _changed(quiet, by_chance.uniform(12, 28), lambda value, _: kept * value)


def _flatline(by_chance: random.Random) -> Points:
    """Stuck at one value, which may be a usual one."""
    quiet = _quiet(by_chance)
    stuck = quiet.points[-30][1] + by_chance.choice((0.0, _size(by_chance, quiet)))
    return _changed(quiet, by_chance.uniform(60, 120), lambda _value, _share: stuck)


def _missing(by_chance: random.Random) -> Points:
    quiet = _quiet(by_chance)
    until = NOW.timestamp() - by_chance.uniform(16, 28) * 60
    return [(at, value) for at, value in quiet.points if at <= until]


SHAPES: Final[Mapping[str, Callable[[random.Random], Points]]] = {
    "spike": _spike,
    "level-shift": _level_shift,
    "drift": _drift,
    "drop": _drop,
    "flatline": _flatline,
    "missing": _missing,
}
KINDS: Final = (*SHAPES, "quiet")


def write_shape(folder: Path, kind: str, seed: int) -> Path:
    """One case as a folder of files. `kind` is a shape, or `quiet`."""
    by_chance = random.Random(f"{kind}/{seed}")
    label = by_chance.choice(("service", "svc", "app", "job"))
    products = [_word(by_chance, 3) for _ in range(8)]
    ill = by_chance.choice(products) if kind in SHAPES else ""
    place = folder / SET / f"{kind}-{seed}"
    place.mkdir(parents=True)
    series = [
        {
            "name": _word(by_chance, 2) + by_chance.choice(_ENDS),
            "labels": {label: product},
            "unit": by_chance.choice(_UNITS),
            "points": SHAPES[kind](by_chance) if product == ill else _quiet(by_chance).points,
        }
        for product in products
    ]
    about = {
        "id": f"{SET}-{kind}-{seed}",
        "set": SET,
        "asked": by_chance.choice(_QUESTIONS),
        "now": NOW.isoformat(),
        "products": products,
    }
    truth = {"healthy": not ill, "culprit": [ill] if ill else [], "suite": kind, "kind": kind}
    (place / "case.json").write_text(json.dumps(about))
    (place / "truth.json").write_text(json.dumps(truth))
    (place / "metrics.ndjson").write_text("\n".join(map(json.dumps, series)))
    return place


def write_shapes(folder: Path, number: int) -> None:
    """So many cases with a change, its kinds in turn, and as many quiet ones."""
    kinds: Sequence[str] = tuple(SHAPES)
    for seed in range(number):
        write_shape(folder, kinds[seed % len(kinds)], seed)
        write_shape(folder, "quiet", seed)


def _word(by_chance: random.Random, syllables: int) -> str:
    return "".join(by_chance.choice(_SYLLABLES) for _ in range(syllables))
