"""Tool calls as chips, and the line about the current activity.

Colour and shape carry the same meaning, for people who do not see colours: 🟡 ⚠ slow, timed out or
wrong arguments; 🔴 ✗ broken; ⚪ ▣ cut or left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from pydantic import JsonValue

from bot.slack.text.links import remark
from bot.slack.text.mrkdwn import inline
from tools.errors import ToolErrorCode
from tools.records import CallEnded, CallEvent, CallSlow, CallStarted, ToolInvocationRecord

_MESSAGE_CHARS = 120
_SUBJECT_CHARS = 40
_ACTIVITIES = {
    "get_logs": "Looking at the logs",
    "get_metrics": "Looking at the metrics",
    "get_traces": "Looking at the traces",
    "find_metrics": "Looking up which metrics exist",
    "query_metrics": "Looking at the metrics",
    "search_traces": "Searching traces",
    "error_patterns": "Looking for new log patterns",
    "get_errors": "Looking at the errors",
    "compare_to_baseline": "Comparing with the last 24 hours",
    "get_recent_deploys": "Looking at recent deploys",
    "get_incident_history": "Searching past incidents",
    "get_admin_info": "Reading the admin info",
    "propose_action": "Preparing a proposal",
    "kubectl_get": "Reading the cluster",
    "kubectl_describe": "Reading the cluster",
    "kubectl_logs": "Looking at pod logs",
    "kubectl_events": "Looking at cluster events",
}
# The arguments that show a call's subject, the most specific first.
_SUBJECTS = ("product", "service", "application", "name", "resource", "namespace", "query")
# Ids mean little to people, so a few characters distinguish them.
_IDS = ("request_id", "trace_id")
_ID_CHARS = 8
_EVERYTHING = "*"  # of all products: nothing in particular
# Further calls are only counted, except failed or slow ones.
_CHIPS_LISTED = 8


class ChipState(StrEnum):
    RUNNING = "⏳"
    OK = "✓"
    SLOW = "🟡 ⚠ slow"
    WARNED = "🟡 ⚠"
    BROKEN = "🔴 ✗"
    CUT = "⚪ ▣"


_TROUBLED = frozenset({ChipState.SLOW, ChipState.WARNED, ChipState.BROKEN})
# Only counted once there are many.
_COUNTED = {ChipState.OK: "done", ChipState.CUT: "cut or stopped", ChipState.RUNNING: "running"}


@dataclass(frozen=True, slots=True)
class Chip:
    """One call. `name` is the short name; `detail` is plain text still to be escaped."""

    name: str
    subject: str
    state: ChipState
    detail: str = ""

    @property
    def text(self) -> str:
        mark = ChipState.WARNED if self.state is ChipState.SLOW else self.state
        subject = f" {remark(self.subject, _SUBJECT_CHARS)}" if self.subject else ""
        detail = f" · {remark(self.detail, _MESSAGE_CHARS)}" if self.detail else ""
        return f"{mark} {inline(self.name, 60)}{subject}{detail}"

    @property
    def is_running(self) -> bool:
        """Whether its result is still awaited."""
        return self.state in {ChipState.RUNNING, ChipState.SLOW}


def short(tool_id: str) -> str:
    """`core__get_logs` → `get_logs`; `mcp__github__search` → `github/search`, which is no built-in's."""
    kind, _, name = tool_id.partition("__")
    return name.replace("__", "/", 1) if kind == "mcp" else name or tool_id


def subject(arguments: Mapping[str, JsonValue]) -> str:
    """What a call is about, from its arguments, or ""."""
    for key in _SUBJECTS:
        if found := _text(arguments, key):
            return found
    return next(filter(None, (_text(arguments, key)[:_ID_CHARS] for key in _IDS)), "")


def span(arguments: Mapping[str, JsonValue]) -> str:
    """The time range that was asked for, as it was asked: `last 30m`; or ""."""
    return _text(arguments, "time_range")


def _text(arguments: Mapping[str, JsonValue], key: str) -> str:
    value = arguments.get(key)
    return value if isinstance(value, str) and value != _EVERYTHING else ""


def advance(chip: Chip | None, event: CallEvent) -> Chip:
    """The chip after an event; a call refused before it started has no chip until it ends."""
    match event:
        case CallStarted():
            return Chip(short(event.name), subject(event.arguments), ChipState.RUNNING)
        case CallSlow():
            known = chip or Chip(short(event.name), "", ChipState.RUNNING)
            return replace(known, state=ChipState.SLOW, detail="taking longer than usual")
        case CallEnded():
            record = event.outcome.record
            state, detail = _verdict(record, event.outcome.summary)
            about = subject(record.arguments) or (chip.subject if chip else "")
            return Chip(short(record.name), about, state, detail)
        case _:
            assert_never(event)


def activity(chips: Sequence[Chip]) -> str:
    """The current activity in mrkdwn: "Looking at the logs of checkout…"; empty if nothing runs."""
    running = [chip for chip in chips if chip.is_running]
    if not running:
        return ""
    first = running[0]
    doing = _ACTIVITIES.get(first.name, f"Running {inline(first.name, 60)}")
    about = f" of {remark(first.subject, _SUBJECT_CHARS)}" if first.subject else ""
    others = f" and {len(running) - 1} more" if len(running) > 1 else ""
    slow = " This query is taking longer than usual." if first.state is ChipState.SLOW else ""
    return f"{doing}{about}{others}…{slow}"


def chip_texts(chips: Sequence[Chip]) -> list[str]:
    """The chips in mrkdwn, at most nine: each call, or counts and the calls that need a look."""
    if len(chips) <= _CHIPS_LISTED:
        return [chip.text for chip in chips]
    troubled = [chip for chip in chips if chip.state in _TROUBLED]
    listed = troubled[-_CHIPS_LISTED:]
    counts = [
        (sum(chip.state is state for chip in chips), f"{state} %d {word}")
        for state, word in _COUNTED.items()
    ]
    counts.append((len(troubled) - len(listed), f"{ChipState.BROKEN} %d more with problems"))
    told = " · ".join(text % count for count, text in counts if count)
    return [*filter(None, [told]), *(chip.text for chip in listed)]


def _verdict(record: ToolInvocationRecord, summary: str) -> tuple[ChipState, str]:
    took = duration(record.latency_ms)
    if record.error_code is not None:
        return _failure(record.error_code, record.message, took)
    again = " · from the cache" if record.cached else ""
    if record.truncated:
        return ChipState.CUT, f"{summary or 'result'} · cut short, there is more · {took}{again}"
    return ChipState.OK, f"{summary} · {took}{again}" if summary else f"{took}{again}"


def _failure(code: ToolErrorCode, message: str, took: str) -> tuple[ChipState, str]:
    match code:
        case ToolErrorCode.VALIDATION | ToolErrorCode.INVALID_JSON:
            return ChipState.WARNED, message or "the arguments did not fit"
        case ToolErrorCode.TOOL_TIMEOUT:
            return ChipState.WARNED, f"timed out after {took}"
        case ToolErrorCode.UPSTREAM:
            return ChipState.BROKEN, message or "upstream failed"
        case ToolErrorCode.EXECUTION | ToolErrorCode.OUTPUT_INVALID:
            return ChipState.BROKEN, "internal error"
        case ToolErrorCode.REDACTION_FAILED:
            return ChipState.BROKEN, "withheld: the result could not be redacted"
        case ToolErrorCode.UNAVAILABLE:
            return ChipState.WARNED, message or "not available"
        case ToolErrorCode.POLICY_DENIED | ToolErrorCode.AUTHZ_DENIED:
            return ChipState.WARNED, message or "not allowed here"
        case ToolErrorCode.CANCELLED:
            return ChipState.CUT, "stopped"
        case _:
            assert_never(code)


def duration(latency_ms: int) -> str:
    """`87 ms`, `1.2 s`, `5m1s`."""
    if latency_ms < 1000:
        return f"{latency_ms} ms"
    if latency_ms < 60_000:
        return f"{latency_ms / 1000:.1f} s"
    minutes, seconds = divmod(latency_ms // 1000, 60)
    return f"{minutes}m{seconds}s"
