"""The log lines that are compared: of the window, of the time before, and their errors of a day."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from tools.analysis.log_changes import (
    BAD_LEVELS,
    Pattern,
    Sample,
    level_of,
    patterns_of,
)
from tools.capabilities import Interval, Logs, LogSweepQuery, SweptLogs

BASELINE: Final = timedelta(hours=1)
LONG_BASELINE: Final = timedelta(hours=24)  # where the hour holds few lines
FEW_LINES: Final = 1_000
MOST_LINES: Final = 10_000  # of the window, and again of the time before
ERRORS: Final = "error"


@dataclass(frozen=True, slots=True)
class Part:
    interval: Interval
    swept: SweptLogs

    def sample(self) -> Sample:
        start, end = self.interval.start.timestamp(), self.interval.end.timestamp()
        return Sample(self.swept.lines, self.swept.counts, start, end)

    @property
    def cut(self) -> Sequence[str]:
        lines = self.swept.lines
        return [name for name, of in self.swept.counts.items() if of > len(lines.get(name, ()))]

    def number(self, product: str) -> int:
        return self.swept.counts.get(product, len(self.swept.lines.get(product, ())))


@dataclass(frozen=True, slots=True)
class Reading:
    """The window, its errors where it was cut, the hour or day before, and the day's errors.

    The last only where it was asked for and there are any now.
    """

    late: Part
    own: Part | None
    early: Part
    day: Part | None

    @property
    def all(self) -> Sequence[Part]:
        return [one for one in (self.late, self.own, self.early, self.day) if one is not None]

    @property
    def partly(self) -> Sequence[str]:
        return sorted(self.own.cut) if self.own else []

    def patterns(self, products: Sequence[str], *, by_load: bool) -> Sequence[Pattern]:
        """Every kind of line. CPU-bound: tens of thousands of lines."""
        own = self.own.sample() if self.own else None
        return patterns_of(
            replace(self.late.sample(), errors=own),
            self.early.sample(),
            products=products,
            by_load=by_load,
            day=self.day.sample() if self.day else None,
        )

    def errors(self) -> Mapping[str, str]:
        """Error lines read of each product, before and within, as `3/40`."""
        late = {**self.late.swept.lines, **(self.own.swept.lines if self.own else {})}
        before, after = (
            {
                product: sum(level_of(line.level, line.message) in BAD_LEVELS for line in lines)
                for product, lines in of.items()
            }
            for of in (self.early.swept.lines, late)
        )
        return {
            product: f"{before.get(product, 0)}/{after.get(product, 0)}"
            for product in sorted(before.keys() | after.keys())
            if before.get(product) or after.get(product)
        }


async def read_windows(
    logs: Logs, wanted: LogSweepQuery, *, against_day: bool, whole: bool
) -> Reading:
    """`wanted` and the time before it, counted first, so that who writes much leaves room.

    `whole`: lines of every level were asked for, so that errors are read on their own where they
    were cut. Raises what Logs raises.
    """
    window = wanted.interval
    # Lines of the question's own second count.
    late = replace(wanted, interval=Interval(window.start, window.end + timedelta(seconds=1)))
    early = replace(wanted, interval=Interval(window.start - BASELINE, window.start))
    own = replace(late, min_level=ERRORS)
    of_late, of_early, *of_own = await logs.count([late, early, *([own] if whole else [])])
    long = replace(wanted, interval=Interval(window.start - LONG_BASELINE, window.start))
    is_short = sum(of_early.values()) < FEW_LINES
    now, before = await asyncio.gather(
        _part(logs, replace(late, counts=of_late)),
        _part(logs, long if is_short else replace(early, counts=of_early)),
    )
    errors = None
    if whole and now.cut:
        of_cut = {product: of for product, of in of_own[0].items() if product in now.cut}
        errors = await _part(logs, replace(own, products=tuple(now.cut), counts=of_cut))
    day, failing = None, list[str]()
    if against_day:
        failing = await asyncio.to_thread(_failing, [now, *([errors] if errors else [])])
    if failing:
        day = await _part(logs, replace(long, products=tuple(failing), min_level=ERRORS))
    return Reading(now, errors, before, day)


def _failing(parts: Sequence[Part]) -> list[str]:
    found = (
        product
        for part in parts
        for product, lines in part.swept.lines.items()
        if any(level_of(line.level, line.message) in BAD_LEVELS for line in lines)
    )
    return list(dict.fromkeys(found))


async def _part(logs: Logs, query: LogSweepQuery) -> Part:
    return Part(query.interval, await logs.sweep(query))
