"""core__sweep_logs: which kinds of log lines are new, more frequent, or no longer come."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from tools.analysis.log_changes import BAD_LEVELS, Line, Pattern, changed_patterns, level_of
from tools.capabilities import (
    CallContext,
    Capabilities,
    Interval,
    LogLine,
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
MOST_CHARS: Final = 300


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
    example: str
    names: list[str] | None = None


class LogSweep(ToolOutput):
    """The most telling first. `lines` are those read of each product, before and within."""

    range: str
    changes: list[LogChange]
    lines: dict[str, str]
    errors: dict[str, str]
    without: list[str]
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
        input=SweepInput,
        output=LogSweep,
        effect=Effect.READ_ONLY,
        redaction=frozenset(LogSweep.model_fields),
        timeouts=QUERY,
        capabilities=frozenset({"logs"}),
        products=SWEEP_SCOPE,
        toolsets=("investigate",),
    )

    async def execute(
        self, arguments: SweepInput, call: CallContext, caps: Capabilities
    ) -> LogSweep:
        """Raises InvalidArguments for a bad range; what Logs raises."""
        logs = bound(caps.logs, "logs")
        window, products = window_of(arguments, call), products_of(arguments, call)
        found = await logs.discover(products, Interval(window.start - LONG_BASELINE, window.end))
        have = [product for product in found.products if product not in set(found.without)]
        end = window.end + timedelta(seconds=1)  # what is logged in the second of the question
        late = await logs.sweep(LogSweepQuery(have, Interval(window.start, end), limit=MOST_LINES))
        early = await logs.sweep(_before(have, window, BASELINE))
        requests = found.requests + late.requests + early.requests
        if sum(len(of_product) for of_product in early.lines.values()) < FEW_LINES:
            early = await logs.sweep(_before(have, window, LONG_BASELINE))
            requests += early.requests
        notes = [*found.notes, *late.notes, *early.notes]
        return _output(window, products, early, late, requests, notes)

    def summarise(self, output: LogSweep, arguments: SweepInput) -> str:
        """`2 new kinds of errors, 5 changes`."""
        del arguments
        bad = sum(one.change == "new" and one.level in BAD_LEVELS for one in output.changes)
        kinds = f"{bad or 'no'} new kind{'' if bad == 1 else 's'} of errors"
        return f"{kinds}, {len(output.changes)} changes"


def _before(products: Sequence[str], window: Interval, length: timedelta) -> LogSweepQuery:
    return LogSweepQuery(products, Interval(window.start - length, window.start), limit=MOST_LINES)


def _output(
    window: Interval,
    products: Sequence[str],
    early: SweptLogs,
    late: SweptLogs,
    requests: int,
    notes: Sequence[str],
) -> LogSweep:
    lines = [*_lines(early.lines, late=False), *_lines(late.lines, late=True)]
    minutes = len({int(line.at // 60) for line in lines if not line.late})
    patterns = changed_patterns(
        lines,
        before_s=60.0 * max(1, minutes),
        after_s=(window.end - window.start).total_seconds(),
        products=products,
    )
    ordered = sorted(patterns, key=_telling, reverse=True)
    names = sorted(early.lines.keys() | late.lines.keys())
    return LogSweep(
        range=range_text(window),
        changes=[_told(one, window) for one in ordered[:MOST_PATTERNS]],
        lines={name: f"{_number(early, name)}/{_number(late, name)}" for name in names},
        errors=_errors(lines),
        without=[name for name in products if name not in names],
        requests=requests,
        truncated=len(ordered) > MOST_PATTERNS,
        notes=[clean_text(note) for note in dict.fromkeys(notes)][:10] or None,
    )


def _lines(found: Mapping[str, Sequence[LogLine]], *, late: bool) -> list[Line]:
    return [
        Line(product, line.level, line.message, late, line.ts_ns / 1e9)
        for product, of_product in found.items()
        for line in of_product
    ]


def _number(found: SweptLogs, product: str) -> int:
    return found.counts.get(product, len(found.lines.get(product, ())))


def _errors(lines: Sequence[Line]) -> dict[str, str]:
    """Error lines read of each product, before and within."""
    counts: dict[str, list[int]] = {}
    for line in lines:
        if level_of(line.level, line.text) in BAD_LEVELS:
            counts.setdefault(line.product, [0, 0])[line.late] += 1
    return {product: f"{before}/{after}" for product, (before, after) in sorted(counts.items())}


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
        after=pattern.after,
        expected=pattern.expected,
        size=round(pattern.size, 1),
        since=at_text(pattern.since, window.start),
        example=clean_text(pattern.example)[:MOST_CHARS],
        names=list(pattern.names) or None,
    )
