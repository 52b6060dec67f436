"""What a metric means by its name: the rows of `conventions.toml`, and the first that fits.

A backend's own word about a metric's type counts more than a row's, which counts more than a suffix.
"""

import fnmatch
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Final, Literal, cast

import re2
from pydantic import BaseModel, ConfigDict, Field

from tools.signals import DETAIL, MAIN, UNKNOWN, Combine, MetricType, Reading, Role, Worse

_ACRONYM: Final = re.compile(r"([A-Z]+)([A-Z][a-z])")
_HUMP: Final = re.compile(r"([a-z0-9])([A-Z])")
_OTHER: Final = re.compile(r"[^a-z0-9]+")
_QUANTILE_PREFIX: Final = re.compile(r"(^|_)(p\d\d)(?=[a-z])")  # `p95latency`
_SUMMED: Final = frozenset({"traffic", "errors", "restarts"})  # what several series add up to
_UP: Final = frozenset({"errors", "latency", "cpu", "memory", "disk", "pool", "queue", "restarts"})


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    role: Role | Literal["none"]
    type: MetricType = ""
    reading: Literal["increase", "changes", "mean", ""] = ""
    unit: str | None = None
    worse: Worse | None = None
    combine: Combine | None = None
    where: str = ""
    over: str = ""
    over_where: str = ""
    rank: int = Field(default=MAIN, ge=MAIN, le=DETAIL)
    counts: Role | Literal["none", ""] = ""
    limit: float | None = None


class _Family(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    source: str
    signals: tuple[_Row, ...]
    squeezed: bool = False
    before: str = ""
    after: str = ""


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    family: tuple[_Family, ...]


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a name says. `role` None: nothing about how a product does. Fields as of Signal."""

    role: Role | None
    rank: int = UNKNOWN
    type: MetricType = ""
    reading: Reading | None = None
    unit: str | None = None
    worse: Worse = "either"
    combine: Combine = "max"
    where: str = ""
    over: str = ""
    over_where: str = ""
    counts: Role | None = None
    limit: float | None = None
    family: str = ""


def written_alike(metric: str) -> str:
    """Lower case with underscores: `HTTPRequests`, `http.requests` and `http_requests` are one."""
    spaced = _HUMP.sub(r"\1_\2", _ACRONYM.sub(r"\1_\2", metric))
    alike = _OTHER.sub("_", spaced.lower()).strip("_")
    return _QUANTILE_PREFIX.sub(r"\1\2_", alike)


class Conventions:
    """The shipped rows, after the operator's: fields of a row, by name (`*` is any).

    Raises ValueError for an invalid row.
    """

    def __init__(self, own: Mapping[str, Mapping[str, object]] | None = None) -> None:
        self._own = tuple(
            (re.compile(fnmatch.translate(name)), _own_meaning(name, fields))
            for name, fields in (own or {}).items()
        )

    def of(self, base: str) -> Meaning:
        """Of a name without `_bucket`, `_sum` and `_count` of a histogram."""
        for pattern, meaning in self._own:
            if pattern.fullmatch(base):
                return meaning
        return meaning_of(base)


def _own_meaning(name: str, fields: Mapping[str, object]) -> Meaning:
    row = _Row.model_validate(
        {"name": name, **{key: value for key, value in fields.items() if value}}
    )
    return _meaning(row, "your own")


@lru_cache(maxsize=8192)
def meaning_of(base: str) -> Meaning:
    """Of a name without `_total`, and without `_bucket`, `_sum` and `_count` of a histogram."""
    alike = written_alike(base).removesuffix("_total")
    fitting = [*_ALIKE.fitting(alike), *_SQUEEZED.fitting(alike.replace("_", ""))]
    return _MEANINGS[min(fitting)] if fitting else Meaning(role="other", combine="avg")


def families() -> tuple[tuple[str, str], ...]:
    return tuple((family.title, family.source) for family in _FILE.family)


def matchers() -> tuple[str, ...]:
    rows = (row for family in _FILE.family for row in family.signals)
    return tuple(text for row in rows for text in (row.where, row.over_where) if text)


def _meaning(row: _Row, family: str) -> Meaning:
    if row.role == "none":
        return Meaning(role=None, family=family)
    role: Role = row.role
    counts = row.counts or ("traffic" if role == "latency" else "none")
    return Meaning(
        role=role,
        rank=row.rank,
        type=row.type,
        reading=cast("Reading", row.reading) if row.reading else None,
        unit=row.unit,
        worse=row.worse or ("up" if role in _UP else "either"),
        combine=row.combine or ("sum" if role in _SUMMED else "max"),
        where=row.where,
        over=row.over,
        over_where=row.over_where,
        counts=None if counts == "none" else counts,
        limit=row.limit,
        family=family,
    )


# Read when this is imported: nothing may read a file while the event loop runs.
_FILE: Final = _File.model_validate(
    tomllib.loads(
        resources.files("adapters.observe").joinpath("conventions.toml").read_text("utf-8")
    )
)
_ROWS: Final = tuple((family, row) for family in _FILE.family for row in family.signals)
_MEANINGS: Final = tuple(_meaning(row, family.title) for family, row in _ROWS)


class _Names:
    """The names of those rows that are `squeezed` or not, all looked for in one pass over a name."""

    def __init__(self, *, squeezed: bool) -> None:
        self._rows = [n for n, (family, _) in enumerate(_ROWS) if family.squeezed == squeezed]
        self._set = re2.Set.FullMatchSet()
        for number in self._rows:
            family, row = _ROWS[number]
            self._set.Add(f"{family.before}(?:{row.name}){family.after}")
        self._set.Compile()

    def fitting(self, name: str) -> Sequence[int]:
        return [self._rows[found] for found in self._set.Match(name) or ()]


_ALIKE: Final = _Names(squeezed=False)
_SQUEEZED: Final = _Names(squeezed=True)

SHIPPED: Final = Conventions()
