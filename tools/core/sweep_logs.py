"""core__sweep_logs: which kinds of log lines are new, more frequent, or no longer come."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Annotated, Final

from pydantic import Field

from tools.analysis.log_changes import BAD_LEVELS, Pattern, Sample, level_of, patterns_of
from tools.capabilities import (
    CallContext,
    Capabilities,
    Interval,
    LogLine,
    Logs,
    LogSweepQuery,
    SweptLogs,
)
from tools.contract import QUERY, Effect, ToolContract, ToolOutput
from tools.core.bound import bound
from tools.core.sweep_arguments import SWEEP_SCOPE, SweepInput, at_text, products_of, window_of
from tools.output import clean_text
from tools.timerange import range_text

BASELINE: Final = timedelta(hours=1)
LONG_BASELINE: Final = timedelta(hours=24)  # where the hour holds few lines
FEW_LINES: Final = 1_000
MOST_LINES: Final = 10_000  # of the window, and again of the time before
MOST_PATTERNS: Final = 40
ERRORS: Final = "error"
MOST_CHARS: Final = 300


class LogSweepInput(SweepInput):
    """With how much of the time before errors are compared."""

    against_day: Annotated[
        bool, Field(description="errors against a day instead of an hour: slower, surer")
    ] = False


class LogChange(ToolOutput):
    """A kind of line that changed: `new`, `grown`, or `gone` though its product still writes."""

    product: str
    level: str
    change: str
    before: int
    after: int
    expected: float
    size: float
    since: str
    since_before: bool = False
    example: str
    names: list[str] | None = None


class LogSweep(ToolOutput):
    """The most telling first. `lines` are those of each product, before and within.

    `errors_before` is the time that errors are compared with. Of `partly` not every error of the
    window was read.
    """

    range: str
    errors_before: str
    changes: list[LogChange]
    lines: dict[str, str]
    errors: dict[str, str]
    without: list[str]
    partly: list[str]
    requests: int
    truncated: bool
    notes: list[str] | None = None


class SweepLogs:
    """Reads the newest lines of every product in the window and before it, and folds them."""

    contract = ToolContract(
        id="core__sweep_logs",
        description=(
            "Kinds of log lines of all products that are new, more frequent or gone against the time"
            " before."
        ),
        input=LogSweepInput,
        output=LogSweep,
        effect=Effect.READ_ONLY,
        redaction=frozenset(LogSweep.model_fields),
        timeouts=QUERY,
        capabilities=frozenset({"logs"}),
        products=SWEEP_SCOPE,
        toolsets=("investigate",),
    )

    async def execute(
        self, arguments: LogSweepInput, call: CallContext, caps: Capabilities
    ) -> LogSweep:
        """Raises InvalidArguments for a bad range; what Logs raises."""
        logs = bound(caps.logs, "logs")
        window, products = window_of(arguments, call), products_of(arguments, call)
        found = await logs.discover(products, Interval(window.start - LONG_BASELINE, window.end))
        have = [product for product in found.products if product not in set(found.without)]
        read = await _read(logs, have, window, against_day=arguments.against_day)
        requests = found.requests + sum(one.swept.requests for one in read.all)
        notes = [*found.notes, *(note for one in read.all for note in one.swept.notes)]
        # Tens of thousands of lines: not while the event loop waits.
        return await asyncio.to_thread(_output, window, products, read, requests, notes)

    def summarise(self, output: LogSweep, arguments: LogSweepInput) -> str:
        """`2 new kinds of errors, 5 changes`."""
        del arguments
        bad = sum(one.change == "new" and one.level in BAD_LEVELS for one in output.changes)
        kinds = f"{bad or 'no'} new kind{'' if bad == 1 else 's'} of errors"
        return f"{kinds}, {len(output.changes)} changes"


@dataclass(frozen=True, slots=True)
class _Part:
    """What was read of an interval."""

    interval: Interval
    swept: SweptLogs

    def sample(self) -> Sample:
        """As it is compared."""
        start, end = self.interval.start.timestamp(), self.interval.end.timestamp()
        return Sample(self.swept.lines, self.swept.counts, start, end)

    @property
    def cut(self) -> Sequence[str]:
        """The products of which not all was read."""
        lines = self.swept.lines
        return [name for name, of in self.swept.counts.items() if of > len(lines.get(name, ()))]


@dataclass(frozen=True, slots=True)
class _Reading:
    """The window, its errors where it was cut, the hour before, and the errors of a day before.

    The last only where it was asked for and there are any now.
    """

    late: _Part
    own: _Part | None
    early: _Part
    errors: _Part | None

    @property
    def all(self) -> Sequence[_Part]:
        """Each of them."""
        return [one for one in (self.late, self.own, self.early, self.errors) if one is not None]


async def _read(
    logs: Logs, products: Sequence[str], window: Interval, *, against_day: bool
) -> _Reading:
    end = window.end + timedelta(seconds=1)  # what is logged in the second of the question
    late, early = await asyncio.gather(
        _part(logs, products, Interval(window.start, end)),
        _part(logs, products, Interval(window.start - BASELINE, window.start)),
    )
    own = await _part(logs, late.cut, late.interval, ERRORS) if late.cut else None
    if sum(len(of_product) for of_product in early.swept.lines.values()) < FEW_LINES:
        before = Interval(window.start - LONG_BASELINE, window.start)
        early = await _part(logs, products, before)
    errors, failing = None, list[str]()
    if against_day:
        failing = await asyncio.to_thread(_failing, [late, *([own] if own else [])])
    if failing:
        before = Interval(window.start - LONG_BASELINE, window.start)
        errors = await _part(logs, failing, before, ERRORS)
    return _Reading(late, own, early, errors)


def _failing(parts: Sequence[_Part]) -> list[str]:
    """Products with errors in their lines."""
    found = (
        product
        for part in parts
        for product, lines in part.swept.lines.items()
        if any(level_of(line.level, line.message) in BAD_LEVELS for line in lines)
    )
    return list(dict.fromkeys(found))


async def _part(
    logs: Logs, products: Sequence[str], interval: Interval, min_level: str = ""
) -> _Part:
    query = LogSweepQuery(products, interval, min_level, limit=MOST_LINES)
    return _Part(interval, await logs.sweep(query))


def _output(
    window: Interval,
    products: Sequence[str],
    read: _Reading,
    requests: int,
    notes: Sequence[str],
) -> LogSweep:
    patterns = patterns_of(
        replace(read.late.sample(), errors=read.own.sample() if read.own else None),
        read.early.sample(),
        products=products,
        day=read.errors.sample() if read.errors else None,
    )
    changed = [one for one in patterns if one.change != "steady"]
    ordered = sorted(changed, key=_telling, reverse=True)
    early, late = read.early.swept, read.late.swept
    names = sorted(early.lines.keys() | late.lines.keys())
    before = (read.errors or read.early).interval
    late_errors = {**late.lines, **(read.own.swept.lines if read.own else {})}
    return LogSweep(
        range=range_text(window),
        errors_before=range_text(before),
        changes=[_told(one, window) for one in ordered[:MOST_PATTERNS]],
        lines={name: f"{_number(early, name)}/{_number(late, name)}" for name in names},
        errors=_errors(early.lines, late_errors),
        without=[name for name in products if name not in names],
        partly=sorted(read.own.cut) if read.own else [],
        requests=requests,
        truncated=len(ordered) > MOST_PATTERNS,
        notes=[clean_text(note) for note in dict.fromkeys(notes)][:10] or None,
    )


def _number(found: SweptLogs, product: str) -> int:
    return found.counts.get(product, len(found.lines.get(product, ())))


def _errors(
    early: Mapping[str, Sequence[LogLine]], late: Mapping[str, Sequence[LogLine]]
) -> dict[str, str]:
    """Error lines read of each product, before and within."""
    before, after = (
        {
            product: sum(level_of(line.level, line.message) in BAD_LEVELS for line in lines)
            for product, lines in of.items()
        }
        for of in (early, late)
    )
    return {
        product: f"{before.get(product, 0)}/{after.get(product, 0)}"
        for product in sorted(before.keys() | after.keys())
        if before.get(product) or after.get(product)
    }


def _telling(pattern: Pattern) -> tuple[bool, bool, float]:
    """Errors before warnings before others, the more surprising first."""
    bad = pattern.level in BAD_LEVELS and pattern.change != "gone"
    return bad, pattern.level == "warn" or pattern.change == "gone", pattern.size


def _told(pattern: Pattern, window: Interval) -> LogChange:
    return LogChange(
        product=clean_text(pattern.product),
        level=pattern.level,
        change=pattern.change,
        before=pattern.before,
        after=pattern.count,
        expected=pattern.expected,
        size=round(pattern.size, 1),
        since=at_text(pattern.first_ns / 1e9, window.start),
        since_before=pattern.began_before,
        example=clean_text(pattern.example)[:MOST_CHARS],
        names=list(pattern.names) or None,
    )
