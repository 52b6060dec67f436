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
from adapters.llm.messages import CompleteRequest, Message, Role
from adapters.llm.on_call import on_call_in
from adapters.llm.stated import Stated, stated, states_fact
from adapters.llm.stated import asking as asking_in
from adapters.llm.triage.follow_up import (
    answered_cause,
    continued,
    culprit_of,
    of_its_kind,
    of_what_was_done,
)
from adapters.llm.triage.intents import Intent, intents
from adapters.llm.triage.names import plain
from adapters.llm.triage.question import ParsedQuestion, understand
from tools.attached import READ_ATTACHMENT

__all__ = ["Case", "SeenResult", "Signals", "number_of", "plain", "read_case", "text_of"]

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
    rollback_action: str = ROLLBACK_ACTION


# Results in the conversation may have been stored before a tool was renamed.
_FORMERLY: Final[Mapping[str, tuple[str, Mapping[str, JsonValue]]]] = {
    "core__sweep_logs": ("core__error_patterns", {"others": True}),
}
_STILL_NOW: Final = timedelta(minutes=1)  # a sample
OWN_CALL: Final = "triage-"  # how the ids of its calls begin


@dataclass(frozen=True, slots=True)
class SeenResult:
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
        value = self.result.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> float | None:
        """A numeric field, None when absent."""
        return number_of(self.result, name)

    def rows(self, name: str) -> Sequence[Mapping[str, JsonValue]]:
        value = self.result.get(name)
        return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []

    def texts(self, name: str) -> Sequence[str]:
        value = self.result.get(name)
        return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []

    def mapping(self, name: str) -> Mapping[str, JsonValue]:
        value = self.result.get(name)
        return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True)
class Case:
    """The question and everything seen since it was asked."""

    question: str
    products: tuple[str, ...]
    tools: frozenset[str]
    seen: tuple[SeenResult, ...]
    asked: ParsedQuestion
    now: datetime | None = None
    rounds: int = 0  # of tools since the question
    stated: tuple[Stated, ...] = ()  # by people, in all of the conversation
    open_proposals: tuple[tuple[str, str, str, str], ...] = ()
    decided: tuple[Decided, ...] = ()  # the same and of other channels, oldest first
    files: tuple[SeenResult, ...] = ()  # what the asker attached; it measures nothing
    tables: tuple[tuple[str, str], ...] = ()  # `adapters.llm.messages.Meta.tables`
    actions: tuple[str, ...] = ()  # that the operators declared, by name
    on_call: str = ""  # as the note beside the question says it
    is_later: bool = False  # the thread asked something before
    answered: str = ""  # the newest answer in the thread that names a cause

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

    def of(self, tool: str) -> SeenResult | None:
        return next((s for s in reversed(self.seen) if s.tool == tool and s.ok), None)

    def all_of(self, tool: str) -> Sequence[SeenResult]:
        return [s for s in self.seen if s.tool == tool and s.ok]

    def called(self, tool: str, arguments: Mapping[str, JsonValue] | None = None) -> bool:
        """Whether it was called with at least these arguments, with any result."""
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
    """The case of the conversation, from the last question on."""
    start = max((i for i, m in enumerate(request.messages) if m.role is Role.USER), default=0)
    turn = request.messages[start:]
    question, meta = turn[0].text if turn else "", request.meta
    zone = zone_in(turn[0].told) if turn else ""
    before = asking_in(request.messages[:start])
    asking = _asking(before, question, meta.products)
    found = tuple(_results(turn))
    is_later = any(m.text != asking for m in before)
    asked = understand(asking, meta.products, meta.now, zone, meta.elsewhere, later=is_later)
    decided = decided_in(turn[0].told) if turn else ()
    asked = of_what_was_done(asked, asking, decided, meta.now)
    answered = answered_cause(request.messages[:start])
    if asked.topic == "figure" and not asked.also and _is_of_cluster_alone(request):
        words = "no metrics are configured, so this is what Kubernetes shows"
        asked = replace(asked, topic="pods", assumed=(*asked.assumed, words))
    culprit = culprit_of(answered, meta.products)
    asked = continued(asked, asking, before, meta, zone, culprit)
    asked = of_its_kind(asked, asking, answered, meta)
    return Case(
        question=question,
        products=meta.products,
        tools=frozenset(t.name for t in request.tools),
        seen=tuple(one for one in found if one.tool != READ_ATTACHMENT),
        files=tuple(one for one in found if one.tool == READ_ATTACHMENT),
        asked=asked,
        now=meta.now,
        rounds=sum(1 for m in turn if any(c.name != READ_ATTACHMENT for c in m.tool_calls)),
        stated=tuple(stated(request.messages)),
        open_proposals=tuple(_OPEN_PROPOSAL.findall(turn[0].told)) if turn else (),
        decided=decided,
        tables=meta.tables,
        actions=meta.actions,
        on_call=on_call_in(turn[0].told) if turn else "",
        is_later=is_later,
        answered=answered,
    )


def _is_of_cluster_alone(request: CompleteRequest) -> bool:
    tools = {one.name for one in request.tools}
    return "core__find_metrics" not in tools and "core__sweep_cluster" in tools


def _asking(before: Sequence[Message], question: str, products: Sequence[str]) -> str:
    """The question to answer anew where people stated a fact: the newest one for a cause."""
    if not before or not states_fact(question):
        return question
    asked = (m.text for m in before[:0:-1])
    causes = (text for text in asked if Intent("cause") in intents(text, products, later=True))
    return next(causes, before[0].text)


def _results(messages: Sequence[Message]) -> Iterator[SeenResult]:
    calls = {c.id: c for m in messages for c in m.tool_calls}
    for message in messages:
        answer = message.tool_result
        if answer is None:
            continue
        call = calls.get(answer.call_id)
        body = _object(answer.content)
        result = body.get("result", body)
        tool, further = _FORMERLY.get(answer.name, (answer.name, {}))
        yield SeenResult(
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
