"""Metrics with too little history to compare: how much is needed, and when to ask again."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from pydantic import JsonValue

from adapters.llm.triage.case import SeenResult, instant, text_of
from adapters.llm.triage.telling import clock
from tools.analysis.comparable import least_age_s

_MOST_MINUTES: Final = 120  # longer times are given in hours
_WORTH_ASKING: Final = timedelta(minutes=5)  # a shorter range holds too few samples


def too_young(
    metrics: SeenResult,
    product: str,
    now: datetime | None,
    roles: Sequence[str] = (),
    *,
    is_usual: bool = True,
) -> str:
    """The text for `product`, with the instants of the sweep.

    `is_usual`: the same question asked later reads a later range. A named range stays where it is.
    """
    what = f" its {', '.join(roles)}" if roles else ""
    minutes = _minutes(metrics)
    age = f"{minutes} minutes" if minutes < _MOST_MINUTES else f"{round(minutes / 60)} hours"
    takes = f" (that takes {age} of data)" if minutes else ""
    again = _again(metrics, product, now, is_usual=is_usual)
    return f"not enough history to compare{what}{takes}{again}"


def _minutes(metrics: SeenResult) -> int:
    """The age that data needs for the range that was looked at; 0 when the sweep does not say."""
    before_s = metrics.number("least_before_s") or 0.0
    begin, _, end = metrics.text("range").partition("/")
    first, last = instant(begin), instant(end)
    if not (before_s and first and last):
        return 0
    return round(least_age_s((last - first).total_seconds(), before_s) / 60)


def _again(metrics: SeenResult, product: str, now: datetime | None, *, is_usual: bool) -> str:
    row: JsonValue = metrics.mapping("comparable").get(product)
    told = row if isinstance(row, dict) else {}
    begin, again = instant(text_of(told, "range_from")), instant(text_of(told, "asked_at"))
    end = instant(metrics.text("range").rpartition("/")[2])
    ways = [f"ask again at {clock(again, now)}"] if again and is_usual else []
    if begin and end and end - begin >= _WORTH_ASKING:
        ways.append(f"{'' if ways else 'ask '}about the time since {clock(begin, now)}")
    return f"; {', or '.join(ways)}" if ways else ""
