"""core__get_logs: log lines of a product, newest first, page by page without loss or repeat."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from tools.capabilities import CallContext, Capabilities, Interval, LogPage, LogQuery, Logs
from tools.contract import QUERY, Effect, ToolContract, ToolInput, ToolOutput
from tools.core.arguments import Product, TimeRangeText
from tools.core.built_in import bound
from tools.core.log_entry import LogEntry, head, log_fields
from tools.cursor import CursorScope, CursorSigner
from tools.errors import InvalidArguments
from tools.output import clean_text
from tools.products import BY_PRODUCT
from tools.timerange import TimeRange, parse_time_range, readable_range

MAX_LINES = 100
# Under the 64 KiB cap, so that the cap never takes lines the cursor has already passed.
PAGE_BUDGET_BYTES = 48 * 1024
_LINE_OVERHEAD_BYTES = 160
_MOST_BYTES = 5  # that count of one character, with its share of the mark where a line was cut
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class LogsInput(ToolInput):
    product: Product
    time_range: TimeRangeText
    query: Annotated[
        str, Field(max_length=2000, description='Text to find, or a LogQL filter: |= "timeout"')
    ] = ""
    level: Annotated[
        Literal["debug", "info", "warn", "error", "fatal"] | None,
        Field(description="Minimum severity"),
    ] = None
    limit: Annotated[int, Field(ge=1, le=MAX_LINES)] = MAX_LINES
    cursor: Annotated[str, Field(description="next_cursor of the page before; else omit")] = ""


class LogsOutput(ToolOutput):
    range: str
    lines: list[LogEntry]
    truncated: bool
    total_matches: int | None = None
    next_cursor: str | None = None
    query_latency_ms: int
    notes: list[str] | None = None


class GetLogs:
    """Reads a page of log lines. Cursors are sealed with `signer`'s key."""

    contract = ToolContract(
        id="core__get_logs",
        description=(
            "Log lines of a product in a time range, newest first, at most 100 a page. Use for"
            " error messages and stack traces; start with level 'error'. When next_cursor is"
            " present, more lines exist: pass it as cursor with the same arguments."
        ),
        input=LogsInput,
        output=LogsOutput,
        effect=Effect.READ_ONLY,
        redaction=frozenset(
            {
                "range",
                "lines[].ts",
                "lines[].level",
                "lines[].host",
                "lines[].message",
                "lines[].trace_id",
                "truncated",
                "total_matches",
                "next_cursor",
                "query_latency_ms",
                "notes",
            }
        ),
        timeouts=QUERY,
        capabilities=frozenset({"logs", "clock"}),
        products=BY_PRODUCT,
        toolsets=("investigate",),
        opaque=frozenset({"next_cursor"}),
    )

    def __init__(self, signer: CursorSigner) -> None:
        self._signer = signer

    async def execute(
        self, arguments: LogsInput, call: CallContext, caps: Capabilities
    ) -> LogsOutput:
        logs = bound(caps.logs, "logs")
        scope = _scope(arguments, call)
        query, when = self._query(arguments, scope, call.now)
        began = caps.clock.now()
        page = await _fitting_page(logs, query)
        latency = caps.clock.now() - began
        output = {
            "range": when.text,
            "lines": [log_fields(line) for line in page.lines],
            "truncated": bool(page.next_cursor),
            "total_matches": page.total_matches,
            "next_cursor": self._sealed(page.next_cursor, when, scope, call.now),
            "query_latency_ms": max(0, round(latency / timedelta(milliseconds=1))),
            "notes": _notes(when, page) or None,
        }
        return LogsOutput.model_validate(output)

    def summarise(self, output: LogsOutput, arguments: LogsInput) -> str:
        """`42 error lines, last 30m`; a page after the first says so."""
        number = len(output.lines)
        more = "+" if output.truncated else ""
        level = f"{arguments.level} " if arguments.level else ""
        noun = "line" if number == 1 and not more else "lines"
        page = "next " if arguments.cursor else ""
        return f"{page}{number}{more} {level}{noun}, {readable_range(arguments.time_range)}"

    def _query(
        self, arguments: LogsInput, scope: CursorScope, now: datetime
    ) -> tuple[LogQuery, TimeRange]:
        if arguments.cursor:
            position = self._signer.open(arguments.cursor, scope, now)
            when = TimeRange(Interval(_instant(position["start"]), _instant(position["end"])))
            inner = str(position["at"])
        else:
            when, inner = parse_time_range(arguments.time_range, now), ""
        query = LogQuery(
            product=arguments.product,
            interval=when.interval,
            filter=arguments.query,
            min_level=arguments.level or "",
            limit=arguments.limit,
            cursor=inner,
        )
        return query, when

    def _sealed(self, inner: str, when: TimeRange, scope: CursorScope, now: datetime) -> str | None:
        if not inner:
            return None
        start, end = _micros(when.interval.start), _micros(when.interval.end)
        return self._signer.seal({"start": start, "end": end, "at": inner}, scope, now)


def _notes(when: TimeRange, page: LogPage) -> list[str]:
    return [*when.notes, *map(clean_text, page.notes)]


def _scope(arguments: LogsInput, call: CallContext) -> CursorScope:
    selecting: dict[str, JsonValue] = {
        "product": arguments.product,
        "query": arguments.query,
        "level": arguments.level,
    }
    return CursorScope(GetLogs.contract.id, call.session_id, selecting)


async def _fitting_page(logs: Logs, query: LogQuery) -> LogPage:
    """A page of lines that fit the result; read again, smaller, when the first does not.

    Cutting the page here would lose lines: its cursor is behind its last line.
    """
    page = await logs.query(query)
    fitting = _how_many_fit(page)
    if fitting >= len(page.lines):
        return page
    return await logs.query(replace(query, limit=fitting))


def _how_many_fit(page: LogPage) -> int:
    longest = sum(len(line.message) + len(line.host) + len(line.trace_id) for line in page.lines)
    if _MOST_BYTES * longest + _LINE_OVERHEAD_BYTES * len(page.lines) <= PAGE_BUDGET_BYTES:
        return len(page.lines)
    used = 0
    for number, line in enumerate(page.lines):
        text = head(line.message)
        used += len(text.encode(errors="replace")) + text.count('"') + text.count("\n")
        used += text.count("\\") + len(line.host) + len(line.trace_id) + _LINE_OVERHEAD_BYTES
        if used > PAGE_BUDGET_BYTES:
            return max(1, number)
    return len(page.lines)


def _micros(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)


def _instant(micros: JsonValue) -> datetime:
    if not isinstance(micros, int):
        raise InvalidArguments("cursor: not valid for this query")
    return _EPOCH + timedelta(microseconds=micros)
