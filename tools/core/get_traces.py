"""core__get_traces: one trace as a tree, thinned to what matters, with its log lines on request."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Optional

from pydantic import AfterValidator, Field

from tools.capabilities import CallContext, Capabilities, Interval, LogQuery
from tools.contract import ToolInput, ToolOutput
from tools.core.built_in import bound, read_only
from tools.core.log_entry import LogEntry, log_entry
from tools.errors import InvalidArguments, ToolError
from tools.output import clean_text
from tools.products import ProductScope, within
from tools.spantree import KeptSpan, SpanForest, assemble, fold
from tools.timerange import instant_text

MAX_ERRORS = 20
MAX_LOG_LINES = 20
MAX_TAGS, MAX_ERROR_TAGS = 3, 8
MAX_TAG_CHARS = 120
MAX_TEXT_CHARS = 200
MAX_MESSAGE_CHARS = 500
LOG_MARGIN = timedelta(seconds=5)  # lines are written a little before and after their span
_TRACE_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_TELLING = ("error", "exception", "http", "rpc", "db", "messaging")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _trace_id(text: str) -> str:
    if _TRACE_ID.fullmatch(text) is None:
        raise ValueError("a trace id is letters, digits, '-' or '_'")
    return text


class TracesInput(ToolInput):
    request_id: Annotated[
        str, AfterValidator(_trace_id), Field(description="Trace id, e.g. a log line's trace_id")
    ]
    include_logs: Annotated[bool, Field(description="Also log lines that carry the id")] = False


class SpanOut(ToolOutput):
    """One span. `start_us` counts from the trace's start; `level` only when shown less deep."""

    span_id: str
    service: str
    operation: str
    start_us: int
    duration_us: int
    self_us: int | None = None
    status: str | None = None
    critical: bool | None = None
    tags: dict[str, str] | None = None
    note: str | None = None
    level: int | None = None
    folded: int | None = None
    children: Optional[list["SpanOut"]] = None  # noqa: UP045 - a forward reference within a union


class SpanError(ToolOutput):
    span_id: str
    service: str
    message: str


class TracesOutput(ToolOutput):
    """The tree of the trace's main root, and further trees when parents are missing."""

    trace_id: str
    range: str | None = None
    duration_us: int | None = None
    span_count: int
    root: SpanOut | None = None
    other_roots: list[SpanOut] | None = None
    errors: list[SpanError]
    logs: list[LogEntry] | None = None
    truncated: bool
    folded_spans: int | None = None
    notes: list[str] | None = None


_SPAN_FIELDS = frozenset(SpanOut.model_fields) - {"children"}


class GetTraces:
    contract = read_only(
        "get_traces",
        "The span tree of one trace: which service was slow or failed. Use with a trace_id"
        " from a log line. critical marks the spans that decided the duration.",
        (TracesInput, TracesOutput),
        "traces",
        ProductScope(narrows=True),
        "investigate",
    )

    async def execute(
        self, arguments: TracesInput, call: CallContext, caps: Capabilities
    ) -> TracesOutput:
        """An unknown trace is an answer, not an error.

        Raises InvalidArguments for an ambiguous id, and what Traces raises.
        """
        trace = await bound(caps.traces, "traces").get(arguments.request_id)
        if trace is None or not trace.spans:
            return TracesOutput(
                trace_id=arguments.request_id,
                span_count=0,
                errors=[],
                truncated=False,
                notes=["no trace with this id; it may have been sampled out or not arrived yet"],
            )
        outside = {span.service for span in trace.spans if not within(call, span.service)}
        if outside:
            raise InvalidArguments(
                f"this trace also touches {len(outside)} services outside this channel's "
                "products, so it cannot be read from here"
            )
        forest = assemble(trace.spans)
        logs, log_notes = await _logs(arguments, forest, caps)
        notes = [*(clean_text(note) for note in trace.notes), *log_notes]
        return _output(clean_text(trace.trace_id), forest, logs, notes)

    def summarise(self, output: TracesOutput, arguments: TracesInput) -> str:
        del arguments
        if output.duration_us is None:
            return "no such trace"
        spans = "1 span" if output.span_count == 1 else f"{output.span_count} spans"
        failed = len(output.errors)
        errors = f", {failed} error{'' if failed == 1 else 's'}" if failed else ""
        return f"{spans}, {output.duration_us / 1000:.4g} ms{errors}"


def _output(
    trace_id: str, forest: SpanForest, logs: list[LogEntry] | None, notes: list[str]
) -> TracesOutput:
    folded = fold(forest)
    shown = sorted(folded.roots, key=lambda kept: kept.node.key != forest.primary)
    trees = [_tree(root, forest.start_us) for root in shown]
    if folded.folded:
        notes.append(
            f"{folded.folded} of {len(forest.nodes)} spans folded away; the critical path, errors"
            " and the slowest are shown"
        )
    if len(trees) > 1:
        notes.append(f"{len(trees)} roots: spans are missing or have not arrived")
    return TracesOutput(
        trace_id=trace_id,
        range=f"{_at(forest.start_us)}/{_at(forest.start_us + forest.duration_us)}",
        duration_us=forest.duration_us,
        span_count=sum(not node.synthetic for node in forest.nodes.values()),
        root=trees[0],
        other_roots=trees[1:] or None,
        errors=_errors(forest),
        logs=logs,
        truncated=folded.folded > 0,
        folded_spans=folded.folded or None,
        notes=notes or None,
    )


def _tree(root: KeptSpan, origin_us: int) -> SpanOut:
    order: list[tuple[KeptSpan, int]] = []
    waiting = [(root, 0)]
    while waiting:
        kept, shown_level = waiting.pop()
        order.append((kept, shown_level))
        waiting.extend((child, shown_level + 1) for child in kept.children)
    built: dict[str, SpanOut] = {}
    for kept, shown_level in reversed(order):
        children = [built[child.node.key] for child in kept.children]
        built[kept.node.key] = _span(kept, origin_us, shown_level, children)
    return built[root.node.key]


def _span(kept: KeptSpan, origin_us: int, shown_level: int, children: list[SpanOut]) -> SpanOut:
    span = kept.node.span
    failed = span.status == "error"
    return SpanOut(
        span_id=clean_text(kept.node.key)[:MAX_TEXT_CHARS],
        service=clean_text(span.service)[:MAX_TEXT_CHARS],
        operation=clean_text(span.operation)[:MAX_TEXT_CHARS],
        start_us=span.start_us - origin_us,
        duration_us=span.duration_us,
        self_us=kept.self_us if kept.self_us != span.duration_us else None,
        status="error" if failed else None,
        critical=kept.critical or None,
        tags=_tags(span.tags, MAX_ERROR_TAGS if failed else MAX_TAGS),
        note=clean_text(kept.node.note) or None,
        level=kept.level if kept.level != shown_level else None,
        folded=kept.folded or None,
        children=children or None,
    )


def _tags(tags: Mapping[str, str], most: int) -> dict[str, str] | None:
    telling = sorted(tags, key=lambda name: (not name.startswith(_TELLING), name))
    shown = {clean_text(name)[:MAX_TAG_CHARS]: clean_text(tags[name]) for name in telling[:most]}
    return {name: value[:MAX_TAG_CHARS] for name, value in shown.items()} or None


def _errors(forest: SpanForest) -> list[SpanError]:
    failed = [node for node in forest.preorder() if node.span.status == "error"]
    return [
        SpanError(
            span_id=clean_text(node.key)[:MAX_TEXT_CHARS],
            service=clean_text(node.span.service)[:MAX_TEXT_CHARS],
            message=clean_text(node.span.message or node.span.operation)[:MAX_MESSAGE_CHARS],
        )
        for node in failed[:MAX_ERRORS]
    ]


async def _logs(
    arguments: TracesInput, forest: SpanForest, caps: Capabilities
) -> tuple[list[LogEntry] | None, Sequence[str]]:
    """Lines of the root's service that carry the id; the trace is worth showing without them."""
    if not arguments.include_logs or forest.primary is None:
        return None, ()
    if caps.logs is None:
        return None, ["logs are not configured"]
    begin = _EPOCH + timedelta(microseconds=forest.start_us)
    query = LogQuery(
        product=forest.nodes[forest.primary].span.service,
        interval=Interval(
            begin - LOG_MARGIN, begin + timedelta(microseconds=forest.duration_us) + LOG_MARGIN
        ),
        filter=arguments.request_id,
        limit=MAX_LOG_LINES,
    )
    try:
        page = await caps.logs.query(query)
    except ToolError as error:
        return None, [f"logs could not be read: {clean_text(error.message)[:MAX_TEXT_CHARS]}"]
    more = [f"only the newest {MAX_LOG_LINES} log lines"] if page.next_cursor else []
    return [log_entry(line) for line in page.lines], more


def _at(us: int) -> str:
    return instant_text(_EPOCH + timedelta(microseconds=us))
