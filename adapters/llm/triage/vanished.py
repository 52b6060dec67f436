"""Findings of the metrics sweep beyond shifts: vanished signals, and series beyond their range."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pydantic import JsonValue

from adapters.llm.triage.case import SeenResult, instant, number_of, plain, text_of
from adapters.llm.triage.explained import part_of

_DOWN: Final = 60.0  # points of a target that is not reached
_MANY: Final = 10  # products: so many at once are hardly all broken, and the list is cut
_GONE: Final = 25.0  # of a signal without samples, or of traffic that fell to nothing


@dataclass(frozen=True, slots=True)
class GoneFact:
    """A signal that existed before and is gone; fields as core__sweep_metrics names them.

    `is_common`: the same happened to most or many products, so the monitoring may be at fault.
    """

    product: str
    role: str
    signal: str
    how: str
    usual: float | None
    unit: str
    since: datetime | None
    is_common: bool
    mark: str
    since_before: bool = False  # it was so in all that was read
    where: str = ""  # the replica that it is of: the others go on

    @property
    def is_target_down(self) -> bool:
        """Whether a target went down; one never reached may be left over in the configuration."""
        return self.how == "down" and not (self.since_before or self.where)

    @property
    def points(self) -> float:
        if self.is_target_down:
            return _DOWN
        is_unknown = self.role == "other" and self.how != "down"
        return _GONE / 2 if self.is_common or is_unknown or self.where else _GONE


@dataclass(frozen=True, slots=True)
class RecordFact:
    """A series that is further from normal than ever before, of any meaning."""

    product: str
    role: str
    signal: str
    usual: float
    worst: float
    falls: bool
    mark: str


def gone_facts(metrics: SeenResult) -> Iterator[GoneFact]:
    rows = metrics.rows("disappeared")
    ended = {text_of(row, "product") for row in rows if _is_whole_end(row)}
    known = metrics.mapping("within").keys() | ended
    is_common = len(ended) >= _MANY or (len(ended) > 1 and 2 * len(ended) > len(known))
    for row in rows:
        how = text_of(row, "how")
        yield GoneFact(
            product=plain(text_of(row, "product")),
            role=text_of(row, "role"),
            signal=plain(text_of(row, "signal")),
            how=how,
            usual=number_of(row, "usual"),
            unit=text_of(row, "unit"),
            since=instant(text_of(row, "since")),
            is_common=how == "ended" and is_common,
            mark=metrics.mark,
            since_before=row.get("since_before") is True,
            where=part_of(text_of(row, "only_at")),
        )


def _is_whole_end(row: Mapping[str, JsonValue]) -> bool:
    return text_of(row, "how") == "ended" and not text_of(row, "only_at")


def record_facts(metrics: SeenResult) -> Iterator[RecordFact]:
    for row in metrics.rows("records"):
        yield RecordFact(
            product=plain(text_of(row, "product")),
            role=text_of(row, "role"),
            signal=plain(text_of(row, "signal")),
            usual=number_of(row, "usual") or 0.0,
            worst=number_of(row, "worst") or 0.0,
            falls=row.get("direction") == "down",
            mark=metrics.mark,
        )
