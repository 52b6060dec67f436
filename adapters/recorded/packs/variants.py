"""Variants of a recorded case: the same incident with other units, names or scales.

A verdict and a culprit should not depend on them. Seeds choose the new names and units.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import orjson
from pydantic import JsonValue

from adapters.recorded.packs.archive import CASE_FILE, METRICS_FILE, TRUTH_FILE, CaseFiles

VariantKind = Literal["units", "metrics", "products", "scale"]
KINDS: Final[Sequence[VariantKind]] = get_args(VariantKind)

_SYLLABLES: Final = ("ba", "do", "fe", "gi", "ku", "lo", "mi", "na", "po", "ru", "sa", "te", "vo")
# What a shop might call its own signals, by what the usual name says.
_WORDS: Final[Sequence[tuple[re.Pattern[str], Sequence[str]]]] = (
    (
        re.compile("latency|duration|response|elapsed", re.IGNORECASE),
        ("wait", "resp_t", "spent", "lag"),
    ),
    (re.compile("avail|success", re.IGNORECASE), ("passed", "fine_part", "yes_share")),
    (re.compile("error|fail|fault", re.IGNORECASE), ("oops", "broken", "nok")),
    (
        re.compile("request|workload|throughput|count", re.IGNORECASE),
        ("visits", "served", "incoming"),
    ),
    (re.compile("cpu|processor", re.IGNORECASE), ("burn", "compute", "crunch")),
    (re.compile("mem|heap", re.IGNORECASE), ("footprint", "held", "resident")),
)
_PARTS: Final = re.compile("_(bucket|sum|count)$")
_QUANTILE: Final = re.compile(r"(?<![0-9])(50|90|95|99)(?![0-9])")
_WORD_BEFORE: Final = r"(?<![A-Za-z0-9])"
_WORD_AFTER: Final = r"(?![A-Za-z0-9])"

# Units of one quantity, with how many of each make the first one.
_FAMILIES: Final[Sequence[Mapping[str, float]]] = (
    {"seconds": 1.0, "milliseconds": 1e3, "microseconds": 1e6, "minutes": 1 / 60},
    {"ratio": 1.0, "percent": 100.0, "permille": 1000.0},
    {"bytes": 1.0, "kibibytes": 1 / 1024, "mebibytes": 1 / 1024**2, "bits": 8.0},
    {"cores": 1.0, "millicores": 1000.0},
)
_SHORT: Final[Mapping[str, str]] = {
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "µs": "microseconds",
    "%": "percent",
    "b": "bytes",
    "kib": "kibibytes",
    "mib": "mebibytes",
}


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to change a case. The same seed gives the same names and units."""

    kind: VariantKind
    seed: int = 1


def variants_of(kinds: Sequence[VariantKind], seeds: int) -> Sequence[Variant]:
    """Each kind with the seeds 1 to `seeds`. Dropped units know no seed, so they come once."""
    return [
        Variant(kind, seed)
        for kind in kinds
        for seed in range(1, (1 if kind == "units" else seeds) + 1)
    ]


def varied(found: CaseFiles, variant: Variant) -> CaseFiles:
    """The case with that change. Its id ends with the kind and the seed, its set with the kind."""
    files = dict(found.files)
    match variant.kind:
        case "units":
            files = _with_series(files, _without_unit)
        case "metrics":
            files = _with_series(files, _Renamed(variant.seed).series)
        case "scale":
            files = _with_series(files, _Rescaled(variant.seed).series)
        case "products":
            files = _with_products(files, variant.seed)
    about = orjson.loads(files[CASE_FILE])
    original = orjson.loads(found.files[CASE_FILE])
    about["id"] = f"{original['id']}~{variant.kind}-{variant.seed}"
    about["set"] = f"{original['set']}~{variant.kind}"
    return CaseFiles(found.place, {**files, CASE_FILE: orjson.dumps(about)})


def _with_series(
    files: Mapping[str, bytes], change: Callable[[dict[str, JsonValue]], None]
) -> dict[str, bytes]:
    if METRICS_FILE not in files:
        return dict(files)
    lines = []
    for line in files[METRICS_FILE].split(b"\n"):
        if line.strip():
            series = orjson.loads(line)
            change(series)
            lines.append(orjson.dumps(series))
    return {**files, METRICS_FILE: b"\n".join(lines)}


def _without_unit(series: dict[str, JsonValue]) -> None:
    series.pop("unit", None)


class _Renamed:
    """Invents a name for each metric, never the same for two. Units are dropped with the names."""

    def __init__(self, seed: int) -> None:
        self._random = _chooser("metrics", seed)
        self._names: dict[str, str] = {}

    def series(self, series: dict[str, JsonValue]) -> None:
        part = _PARTS.search(str(series["name"]))
        base = _PARTS.sub("", str(series["name"]))
        if base not in self._names:
            self._names[base] = self._invented(base)
        series["name"] = self._names[base] + (part[0] if part else "")
        series.pop("unit", None)

    def _invented(self, base: str) -> str:
        choices = next((words for pattern, words in _WORDS if pattern.search(base)), None)
        word = self._random.choice(choices) if choices else _invented_word(self._random, 2)
        quantile = _QUANTILE.search(base)
        name = f"{word}_q{quantile[0]}" if quantile else word
        taken = set(self._names.values())
        return name if name not in taken else f"{name}_{_invented_word(self._random, 3)}"


class _Rescaled:
    def __init__(self, seed: int) -> None:
        self._seed = seed

    def series(self, series: dict[str, JsonValue]) -> None:
        unit = str(series.get("unit") or "").casefold()
        unit = _SHORT.get(unit, unit)
        family = next((one for one in _FAMILIES if unit in one), None)
        points = series["points"]
        if family is None or not isinstance(points, list):
            return
        # One choice for each metric, so that its replicas stay comparable.
        chooser = _chooser("scale", self._seed, str(series["name"]))
        other = chooser.choice([name for name in family if name != unit])
        factor = family[other] / family[unit]
        series["unit"] = other
        series["points"] = [_scaled(point, factor) for point in points]


def _scaled(point: JsonValue, factor: float) -> JsonValue:
    if not (isinstance(point, list) and len(point) == 2):
        return point
    at, value = point
    return [at, value * factor if isinstance(value, int | float) else value]


def _with_products(files: Mapping[str, bytes], seed: int) -> dict[str, bytes]:
    """New names in every text of every file, but for the words that the truth asks for."""
    chooser = _chooser("products", seed)
    new: dict[str, str] = {}
    for product in orjson.loads(files[CASE_FILE])["products"]:
        name = _invented_word(chooser, 3)
        while name in new.values():
            name = _invented_word(chooser, 3)
        new[product] = name
    if not new:
        return dict(files)
    longest_first = sorted(new, key=len, reverse=True)
    names = re.compile(f"{_WORD_BEFORE}({'|'.join(map(re.escape, longest_first))}){_WORD_AFTER}")

    def renamed(text: str) -> str:
        return names.sub(lambda match: new[match[1]], text)

    return {name: _file_renamed(name, content, renamed) for name, content in files.items()}


def _file_renamed(name: str, content: bytes, renamed: Callable[[str], str]) -> bytes:
    if name == TRUTH_FILE:
        truth = orjson.loads(content)
        truth["culprit"] = [renamed(one) for one in truth.get("culprit") or ()]
        return orjson.dumps(truth)
    if not name.endswith(".ndjson"):
        return orjson.dumps(_values_renamed(orjson.loads(content), renamed))
    lines = (line for line in content.split(b"\n") if line.strip())
    return b"\n".join(orjson.dumps(_values_renamed(orjson.loads(one), renamed)) for one in lines)


def _values_renamed(value: JsonValue, renamed: Callable[[str], str]) -> JsonValue:
    if isinstance(value, str):
        return renamed(value)
    if isinstance(value, list):
        return [_values_renamed(one, renamed) for one in value]
    if isinstance(value, dict):
        return {
            key: one if key == "points" else _values_renamed(one, renamed)
            for key, one in value.items()
        }
    return value


def _chooser(*of: object) -> random.Random:
    return random.Random("/".join(map(str, of)))  # noqa: S311 - repeatable, no secret


def _invented_word(chooser: random.Random, syllables: int) -> str:
    return "".join(chooser.choice(_SYLLABLES) for _ in range(syllables))
