"""What a triage knows so far, read back from the conversation. It keeps no state of its own."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

import orjson
from pydantic import JsonValue

from adapters.llm.decided import ELSEWHERE, Decided, decided_in
from adapters.llm.local_time import zone_in
from adapters.llm.messages import CompleteRequest, Message, Meta, Role
from adapters.llm.stated import Stated, is_statement, stated, states_fact
from adapters.llm.triage.names import plain
from adapters.llm.triage.outside import is_elsewhere, told_apart
from adapters.llm.triage.question import Asked, understand
from tools.attached import READ_ATTACHMENT

__all__ = ["Case", "Seen", "Signals", "number_of", "plain", "read_case", "text_of"]

ROLLBACK_ACTION: Final = "rollback-deploy"  # the one action that a triage proposes

# As the notes beside the question word it; they are ours.
_OPEN_PROPOSAL = re.compile(
    r"^- Proposal ([\w-]+) \(([\w-]+) ([\w./-]+) .*?\)("
    + re.escape(ELSEWHERE)
    + r")?: .*; do not propose it again\.$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Signals:
    """The action to propose for a bad deploy."""

    rollback_action: str = ROLLBACK_ACTION


# Results in the conversation may have been stored before a tool was renamed.
_FORMERLY: Final[Mapping[str, tuple[str, Mapping[str, JsonValue]]]] = {
    "core__sweep_logs": ("core__error_patterns", {"others": True}),
}
_STILL_NOW: Final = timedelta(minutes=1)  # a sample
_OF_IT: Final = re.compile(
    r"\b(?:to|of|in|for|on|with) (?:it|them)\b|\b(?:its|there)\b", re.IGNORECASE
)
OWN_CALL: Final = "triage-"  # how the ids of its calls begin


@dataclass(frozen=True, slots=True)
class Seen:
    """One tool result of this turn: `mark` is its evidence number as cited.

    `is_own`: triage asked for it itself, not the model that it answers after.
    """

    mark: str
    tool: str
    arguments: Mapping[str, JsonValue]
    ok: bool
    result: Mapping[str, JsonValue]
    is_own: bool

    def text(self, name: str) -> str:
        """A string field, empty when absent."""
        value = self.result.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> float | None:
        """A numeric field, None when absent."""
        return number_of(self.result, name)

    def rows(self, name: str) -> Sequence[Mapping[str, JsonValue]]:
        """A list of objects, empty when absent."""
        value = self.result.get(name)
        return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []

    def texts(self, name: str) -> Sequence[str]:
        """A list of strings, empty when absent."""
        value = self.result.get(name)
        return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []

    def mapping(self, name: str) -> Mapping[str, JsonValue]:
        """An object, empty when absent."""
        value = self.result.get(name)
        return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True)
class Case:
    """The question and everything seen since it was asked."""

    question: str
    products: tuple[str, ...]
    tools: frozenset[str]
    seen: tuple[Seen, ...]
    asked: Asked
    now: datetime | None = None
    rounds: int = 0  # of tools since the question
    stated: tuple[Stated, ...] = ()  # by people, in all of the conversation
    # Of this thread and of its channel's others: id, action, product, where if it is another thread.
    open_proposals: tuple[tuple[str, str, str, str], ...] = ()
    decided: tuple[Decided, ...] = ()  # the same and of other channels, oldest first
    files: tuple[Seen, ...] = ()  # what the asker attached; it measures nothing
    tables: tuple[tuple[str, str], ...] = ()  # `adapters.llm.messages.Meta.tables`

    @property
    def subject(self) -> str:
        """The product asked about: named in the question, else the channel's first."""
        return self.asked.subject or (self.products[0] if self.products else "")

    @property
    def names_subject(self) -> bool:
        """Whether the question names a product of the channel."""
        return bool(self.asked.subject)

    @property
    def is_past(self) -> bool:
        """Whether it is about a time that ended a while ago."""
        end = self.asked.end
        return end is not None and self.now is not None and self.now - end > _STILL_NOW

    def of(self, tool: str) -> Seen | None:
        """The latest successful result of a tool."""
        return next((s for s in reversed(self.seen) if s.tool == tool and s.ok), None)

    def all_of(self, tool: str) -> Sequence[Seen]:
        """All successful results of a tool, in order."""
        return [s for s in self.seen if s.tool == tool and s.ok]

    def called(self, tool: str, arguments: Mapping[str, JsonValue] | None = None) -> bool:
        """Whether it was called with at least these arguments, with whatever result."""
        wanted = dict(arguments or {}).items()
        return any(s.tool == tool and wanted <= s.arguments.items() for s in self.seen)


def number_of(row: Mapping[str, JsonValue], name: str) -> float | None:
    """A numeric field of an object, None when absent."""
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def instant(text: str) -> datetime | None:
    """An RFC 3339 instant in UTC, None when it is not one of our times."""
    try:
        value = datetime.fromisoformat(text)
        return value.astimezone(UTC) if value.tzinfo and 1970 <= value.year < 3000 else None
    except (ValueError, OverflowError):
        return None


def text_of(row: Mapping[str, JsonValue], name: str) -> str:
    """A string field of an object, empty when absent."""
    value = row.get(name)
    return value if isinstance(value, str) else ""


def read_case(request: CompleteRequest) -> Case:
    """The case as the conversation tells it, from the last question on."""
    start = max((i for i, m in enumerate(request.messages) if m.role is Role.USER), default=0)
    turn = request.messages[start:]
    question, meta = turn[0].text if turn else "", request.meta
    zone = zone_in(turn[0].told) if turn else ""
    asking = _asking(request.messages[:start], question)
    found = tuple(_results(turn))
    asked = understand(asking, meta.products, meta.now, zone, meta.elsewhere)
    decided = decided_in(turn[0].told) if turn else ()
    asked = _of_what_was_done(asked, decided)
    return Case(
        question=question,
        products=meta.products,
        tools=frozenset(t.name for t in request.tools),
        seen=tuple(one for one in found if one.tool != READ_ATTACHMENT),
        files=tuple(one for one in found if one.tool == READ_ATTACHMENT),
        asked=_continued(asked, asking, request.messages[:start], meta, zone),
        now=meta.now,
        rounds=sum(1 for m in turn if any(c.name != READ_ATTACHMENT for c in m.tool_calls)),
        stated=tuple(stated(request.messages)),
        open_proposals=tuple(_OPEN_PROPOSAL.findall(turn[0].told)) if turn else (),
        decided=decided,
        tables=meta.tables,
    )


def _of_what_was_done(asked: Asked, decided: Sequence[Decided]) -> Asked:
    """Whether it helped is asked of whoever something was confirmed for last, where nobody is named."""
    done = next((one for one in reversed(decided) if one.went_out), None)
    if not asked.asks_helped or asked.subject or asked.stranger or done is None:
        return asked
    words = f"this is about {plain(done.product)}, for which something was confirmed last"
    return replace(asked, subject=done.product, assumed=(*asked.assumed, words))


def _continued(
    asked: Asked, question: str, earlier: Sequence[Message], meta: Meta, zone: str
) -> Asked:
    """A question that names nobody goes on about whoever was asked about before.

    Of deploys, and of what was done, only one "of it" does. Who asks since when means the time that was asked about, too.
    """
    if asked.topic in ("deploys", "done") and not asked.stranger and not _OF_IT.search(question):
        return asked
    if asked.subject or asked.topic in ("greeting", "unclear") or asked.stranger:
        return told_apart(asked, question, meta)
    for message in reversed(earlier):
        if message.role is not Role.USER or is_statement(message.text):
            continue
        now = meta.now if asked.asks_when and asked.start is None else None
        before = understand(message.text, meta.products, now, zone, meta.elsewhere)
        if before.start is not None:
            asked = replace(asked, start=before.start, end=before.end, is_exact=before.is_exact)
            asked = replace(asked, is_cut=before.is_cut, assumed=before.assumed)
        if before.subject:
            words = f"this is about {before.subject}, as before"
            return replace(asked, subject=before.subject, assumed=(*asked.assumed, words))
        if is_elsewhere(before.stranger, meta):
            return told_apart(replace(asked, stranger=before.stranger), message.text, meta)
    return asked


def _asking(earlier: Sequence[Message], question: str) -> str:
    """The newest message, or the question that it tells something about."""
    if not states_fact(question):
        return question
    said = (m.text for m in reversed(earlier) if m.role is Role.USER and m.text.strip())
    return next((text for text in said if not is_statement(text)), question)


def _results(messages: Sequence[Message]) -> Iterator[Seen]:
    calls = {c.id: c for m in messages for c in m.tool_calls}
    for message in messages:
        answer = message.tool_result
        if answer is None:
            continue
        call = calls.get(answer.call_id)
        body = _object(answer.content)
        result = body.get("result", body)
        tool, further = _FORMERLY.get(answer.name, (answer.name, {}))
        yield Seen(
            mark=str(body.get("evidence", "")),
            tool=tool,
            arguments={**_object(call.arguments), **further} if call else {},
            ok=not answer.is_error,
            result=result if isinstance(result, dict) else {},
            is_own=answer.call_id.startswith(OWN_CALL),
        )


def _object(text: str) -> Mapping[str, JsonValue]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
