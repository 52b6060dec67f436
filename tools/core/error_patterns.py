"""core__error_patterns: log lines folded into templates, each new, grown or as always."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, Literal

from pydantic import Field

from tools.analysis.log_changes import Change, Pattern, Sample, patterns_of
from tools.capabilities import CallContext, Capabilities, Interval, LogSweepQuery, SweptLogs
from tools.contract import QUERY, Effect, ToolContract, ToolInput, ToolOutput
from tools.core.arguments import ProductOrAny, TimeRangeText
from tools.core.bound import bound
from tools.core.log_entry import head
from tools.output import clean_text
from tools.products import ANY_PRODUCT, ProductScope
from tools.timerange import instant_text, parse_time_range, range_text

MAX_PATTERNS = 25
MAX_EXAMPLE_CHARS = 400
MAX_NAMES = 8
LEAST_EARLIER = timedelta(hours=1)
MOST_EARLIER = timedelta(hours=24)
_RANK: Final = {"fatal": 0, "error": 1, "warn": 2, "": 3, "info": 4, "debug": 5}
_FIRST: Final[Mapping[Change, int]] = {"new": 0, "grown": 1, "gone": 2, "steady": 3}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class PatternsInput(ToolInput):
    """Whose log lines, and the window to fold."""

    product: ProductOrAny
    time_range: TimeRangeText
    level: Annotated[
        Literal["debug", "info", "warn", "error", "fatal"] | None,
        Field(description="Minimum severity"),
    ] = "warn"
    query: Annotated[str, Field(max_length=2000)] = ""


class LogPattern(ToolOutput):
    """One template. `before` is its count in the earlier range, `expected` what the range would
    hold had nothing changed; `names` are products that the example speaks of.
    """

    product: str
    level: str
    template: str
    change: Change
    count: int
    before: int
    expected: float
    first: str
    last: str
    example: str
    hosts: list[str] | None = None
    names: list[str] | None = None


class PatternsOutput(ToolOutput):
    """New ones first, then grown, gone, and those that come as always."""

    range: str
    earlier_range: str
    lines: int
    patterns: list[LogPattern]
    truncated: bool
    notes: list[str] | None = None


class ErrorPatterns:
    """Folds log lines into templates and compares with the time before."""

    contract = ToolContract(
        id="core__error_patterns",
        description=(
            "Warnings and errors of a product, folded into patterns with counts: which are new or"
            " more frequent than before, since when, where, naming whom. Use before reading single lines."
        ),
        input=PatternsInput,
        output=PatternsOutput,
        effect=Effect.READ_ONLY,
        redaction=frozenset(
            {"range", "earlier_range", "lines", "truncated", "notes"}
            | {f"patterns[].{name}" for name in LogPattern.model_fields}
        ),
        timeouts=QUERY,
        capabilities=frozenset({"logs"}),
        products=ProductScope(("product",), narrows=True),
        toolsets=("investigate",),
    )

    async def execute(
        self, arguments: PatternsInput, call: CallContext, caps: Capabilities
    ) -> PatternsOutput:
        """Raises InvalidArguments for a bad time range or filter; what Logs raises."""
        when = parse_time_range(arguments.time_range, call.now)
        logs = bound(caps.logs, "logs")
        products = call.products if arguments.product == ANY_PRODUCT else (arguments.product,)
        if not products:
            products = tuple((await logs.discover((), when.interval)).products)
        length = when.interval.end - when.interval.start
        earlier = Interval(
            when.interval.start - min(MOST_EARLIER, max(length, LEAST_EARLIER)), when.interval.start
        )
        level, text = arguments.level or "", arguments.query
        now_lines, past_lines = await asyncio.gather(
            logs.sweep(LogSweepQuery(products, when.interval, level, text)),
            logs.sweep(LogSweepQuery(products, earlier, level, text)),
        )
        known = {*products, *call.products}
        patterns = await asyncio.to_thread(
            patterns_of,
            _sample(now_lines, when.interval),
            _sample(past_lines, earlier),
            products=known,
            by_load=False,
        )
        found = sorted(patterns, key=_telling)
        notes = [*now_lines.notes, *([when.assumed] if when.assumed else [])]
        notes += [f"before: {note}" for note in past_lines.notes]
        return PatternsOutput(
            range=when.text,
            earlier_range=range_text(earlier),
            lines=sum(now_lines.counts.values()),
            patterns=[_entry(one) for one in found[:MAX_PATTERNS]],
            truncated=len(found) > MAX_PATTERNS,
            notes=[clean_text(note) for note in notes] or None,
        )

    def summarise(self, output: PatternsOutput, arguments: PatternsInput) -> str:
        """`3 new, 1 grown of 12 patterns, 1240 lines, last 30m`."""
        new = sum(one.change == "new" for one in output.patterns)
        grown = sum(one.change == "grown" for one in output.patterns)
        more = f", {grown} grown" if grown else ""
        return f"{new} new{more} of {len(output.patterns)} patterns, {output.lines} lines, {arguments.time_range}"


def _sample(found: SweptLogs, interval: Interval) -> Sample:
    start, end = interval.start.timestamp(), interval.end.timestamp()
    return Sample(found.lines, found.counts, start, end)


def _telling(one: Pattern) -> tuple[int, int, int, str, str]:
    """New, grown, gone, then what comes as always; the worst level first."""
    return _FIRST[one.change], _RANK.get(one.level, 3), -one.count, one.product, one.template


def _entry(one: Pattern) -> LogPattern:
    return LogPattern(
        product=clean_text(one.product),
        level=clean_text(one.level) or "unknown",
        template=clean_text(one.template),
        change=one.change,
        count=one.count,
        before=one.before,
        expected=one.expected,
        first=_instant(one.first_ns),
        last=_instant(one.last_ns),
        example=head(one.example)[:MAX_EXAMPLE_CHARS],
        hosts=[clean_text(host) for host in one.hosts] or None,
        names=[clean_text(name) for name in one.names[:MAX_NAMES]] or None,
    )


def _instant(ts_ns: int) -> str:
    return instant_text(_EPOCH + timedelta(seconds=ts_ns // 1_000_000_000))
