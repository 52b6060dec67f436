"""core__search_traces: traces of a product, the slowest first: slow, failed, of one operation."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import Field

from tools.capabilities import CallContext, Capabilities, TraceQuery, TraceSummary
from tools.contract import ToolInput, ToolOutput
from tools.core.arguments import Product, TimeRangeText, step_seconds
from tools.core.built_in import bound, entry_of, read_only
from tools.output import clean_text
from tools.products import BY_PRODUCT
from tools.timerange import parse_time_range

MAX_TRACES = 50
MAX_SERVICES = 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SearchInput(ToolInput):
    product: Product
    time_range: TimeRangeText
    min_duration: Annotated[str | None, Field(max_length=20, description="'500ms', '2s'")] = None
    errors: Annotated[bool, Field(description="Only failed spans")] = False
    operation: Annotated[str, Field(max_length=200, description="Exact name")] = ""
    limit: Annotated[int, Field(ge=1, le=MAX_TRACES)] = 20


class FoundTrace(ToolOutput):
    """One trace. `failed` counts spans; `root` is where it began."""

    trace_id: str
    ts: str
    duration_ms: float
    root: str
    services: list[str] | None = None
    spans: int | None = None
    failed: int | None = None


class SearchOutput(ToolOutput):
    """The slowest first."""

    range: str
    traces: list[FoundTrace]
    notes: list[str] | None = None


class SearchTraces:
    contract = read_only(
        "search_traces",
        "Traces with a span of the product, the slowest first. Use to find a slow or failed"
        " request; its id reads it whole.",
        (SearchInput, SearchOutput),
        "traces",
        BY_PRODUCT,
        "investigate",
    )

    async def execute(
        self, arguments: SearchInput, call: CallContext, caps: Capabilities
    ) -> SearchOutput:
        when = parse_time_range(arguments.time_range, call.now)
        query = TraceQuery(
            product=arguments.product,
            interval=when.interval,
            operation=arguments.operation,
            min_duration_ms=_milliseconds(arguments.min_duration),
            errors=arguments.errors,
            limit=arguments.limit,
        )
        found = await bound(caps.traces, "traces").search(query)
        notes = [*map(clean_text, found.notes), *when.notes]
        return SearchOutput(
            range=when.text, traces=[_entry(one) for one in found.traces], notes=notes or None
        )

    def summarise(self, output: SearchOutput, arguments: SearchInput) -> str:
        kind = "failed traces" if arguments.errors else "traces"
        slowest = f", slowest {output.traces[0].duration_ms:g} ms" if output.traces else ""
        return f"{len(output.traces) or 'no'} {kind} of {arguments.product}{slowest}"


def _milliseconds(text: str | None) -> float:
    if text is None:
        return 0.0
    plain = text.strip().lower()
    if plain.endswith("ms") and plain[:-2].strip().replace(".", "", 1).isdigit():
        return float(plain[:-2])
    return (step_seconds(plain) or 0.0) * 1000


def _entry(one: TraceSummary) -> FoundTrace:
    began = _EPOCH + timedelta(microseconds=one.start_us)
    return entry_of(
        FoundTrace,
        one,
        ts=began,
        duration_ms=round(one.duration_us / 1000, 1),
        root=f"{one.service} {one.operation}".strip(),
        services=[clean_text(name) for name in one.services[:MAX_SERVICES]] or None,
    )
