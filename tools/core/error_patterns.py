"""core__error_patterns: which kinds of log lines are new, more frequent, or no longer come."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Annotated, Final, Literal

from pydantic import Field

from tools.analysis.log_changes import BAD_LEVELS, Pattern, Sample, level_of, patterns_of
from tools.capabilities import CallContext, Capabilities, Interval, Logs, LogSweepQuery, SweptLogs
from tools.contract import ToolOutput
from tools.core.arguments import ProductOrNone
from tools.core.built_in import bound, counted, read_only
from tools.core.sweep_arguments import SWEEP_SCOPE, SweepInput, at_text, products_of, window_of
from tools.output import clean_text
from tools.timerange import range_text

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


MOST_PATTERNS: Final = 40
MOST_CHARS: Final = 300
_SILENT_S: Final = 180.0  # what comes by tens does so within it; lines arrive late by seconds


class PatternsInput(SweepInput):
    product: Annotated[
        ProductOrNone,
        Field(description="this one, with what comes as always too; empty: all of the channel's"),
    ] = ""
    others: Annotated[
        bool, Field(description="with a product: also changes of the channel's other products")
    ] = False
    level: Annotated[
        Literal["debug", "info", "warn", "error", "fatal"] | None,
        Field(description="Minimum severity"),
    ] = None
    query: Annotated[str, Field(max_length=2000, description="Text that lines hold")] = ""
    against_day: Annotated[
        bool, Field(description="errors against a day instead of an hour: slower, surer")
    ] = False


class LogPattern(ToolOutput):
    """A kind of line: `new`, `grown`, `gone` though its product still writes, or `steady`.

    `before` and `after` are lines before and within the range, `expected` what it would hold had
    nothing changed; `names` are products that the example speaks of. `until` is when the last one came,
    where none did for long since (None: they come).
    """

    product: str
    level: str
    change: str
    before: int
    after: int
    expected: float
    size: float
    since: str
    since_before: bool = False
    until: str | None = None
    example: str
    hosts: list[str] | None = None
    names: list[str] | None = None


class PatternsOutput(ToolOutput):
    """The most surprising first. `lines` are those of each product, before and within.

    `errors_before` is the baseline of errors. For products in `partly` not every error of the
    window was read.
    """

    range: str
    errors_before: str
    changes: list[LogPattern]
    lines: dict[str, str]
    errors: dict[str, str]
    without: list[str]
    partly: list[str]
    requests: int
    truncated: bool
    notes: list[str] | None = None


class ErrorPatterns:
    contract = read_only(
        "error_patterns",
        "Log patterns that are new, more frequent or gone against the time before: how many, "
        "since when, where, naming which service; of all products or of one. Use before reading single"
        " lines.",
        (PatternsInput, PatternsOutput),
        "logs",
        SWEEP_SCOPE,
        "investigate",
    )

    async def execute(
        self, arguments: PatternsInput, call: CallContext, caps: Capabilities
    ) -> PatternsOutput:
        logs = bound(caps.logs, "logs")
        window = window_of(arguments, call)
        is_one = bool(arguments.product) and not arguments.others
        products = (arguments.product,) if is_one else products_of(arguments, call)
        found = await logs.discover(products, Interval(window.start - LONG_BASELINE, window.end))
        have = [product for product in found.products if product not in set(found.without)]
        wanted = LogSweepQuery(have, window, arguments.level or "", arguments.query, MOST_LINES)
        whole = not arguments.level and not arguments.query
        read = await read_windows(logs, wanted, against_day=arguments.against_day, whole=whole)
        # Tens of thousands of lines: not while the event loop waits.
        known = list(dict.fromkeys((*products, *call.products)))
        patterns = await asyncio.to_thread(read.patterns, known, by_load=whole)
        kept = [one for one in patterns if is_one or one.change != "steady"]
        notes = [*found.notes, *(note for one in read.all for note in one.swept.notes)]
        counting = 1 if have else 0
        requests = found.requests + counting + sum(one.swept.requests for one in read.all)
        return _output(window, products, read, kept, requests, notes)

    def summarise(self, output: PatternsOutput, arguments: PatternsInput) -> str:
        del arguments
        bad = sum(one.change == "new" and one.level in BAD_LEVELS for one in output.changes)
        changed = sum(one.change != "steady" for one in output.changes)
        changes = f"{changed} change{'' if changed == 1 else 's'}"
        return f"{counted(bad, 'new kind')} of errors, {changes}"


def _output(
    window: Interval,
    products: Sequence[str],
    read: Reading,
    patterns: Sequence[Pattern],
    requests: int,
    notes: Sequence[str],
) -> PatternsOutput:
    ordered = sorted(patterns, key=_telling, reverse=True)
    early, late = read.early, read.late
    names = sorted(early.swept.lines.keys() | late.swept.lines.keys())
    before = (read.day or early).interval
    return PatternsOutput(
        range=range_text(window),
        errors_before=range_text(before),
        changes=[_pattern_row(one, window) for one in ordered[:MOST_PATTERNS]],
        lines={name: f"{early.number(name)}/{late.number(name)}" for name in names},
        errors=dict(read.errors()),
        without=[name for name in products if name not in names],
        partly=list(read.partly),
        requests=requests,
        truncated=len(ordered) > MOST_PATTERNS,
        notes=[clean_text(note) for note in dict.fromkeys(notes)][:10] or None,
    )


def _telling(pattern: Pattern) -> tuple[bool, bool, bool, float]:
    changed = pattern.change != "steady"
    bad = pattern.level in BAD_LEVELS and pattern.change != "gone"
    return changed, bad, pattern.level == "warn" or pattern.change == "gone", pattern.size


def _ended(pattern: Pattern, window: Interval) -> str | None:
    if pattern.change == "gone":
        return None
    last_s = pattern.last_ns / 1e9
    between_s = (last_s - pattern.first_ns / 1e9) / max(1, pattern.count - 1)
    silent_s = window.end.timestamp() - last_s
    return at_text(last_s, window.start) if silent_s > max(_SILENT_S, 3 * between_s) else None


def _pattern_row(pattern: Pattern, window: Interval) -> LogPattern:
    return LogPattern(
        product=clean_text(pattern.product),
        level=pattern.level,
        change=pattern.change,
        before=pattern.before,
        after=pattern.count,
        expected=pattern.expected,
        size=round(pattern.size, 1),
        since=at_text(pattern.first_ns / 1e9, window.start),
        since_before=pattern.began_before,
        until=_ended(pattern, window),
        example=clean_text(pattern.example)[:MOST_CHARS],
        hosts=[clean_text(host) for host in pattern.hosts] or None,
        names=list(pattern.names) or None,
    )
