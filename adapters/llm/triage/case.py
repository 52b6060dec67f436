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
from adapters.llm.on_call import on_call_in
from adapters.llm.stated import Stated, is_statement, stated, states_fact
from adapters.llm.triage.intents import asks_if_fine
from adapters.llm.triage.names import plain
from adapters.llm.triage.outside import is_elsewhere, told_apart
from adapters.llm.triage.question import ParsedQuestion, understand
from tools.attached import READ_ATTACHMENT
from tools.output import lines_of

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
_OF_IT: Final = re.compile(
    r"\b(?:to|of|in|for|on|with) (?:it|them)\b|\b(?:its|there(?! be\b))\b|\bdescribe (?:it|that)\b",
    re.IGNORECASE,
)
_OF_ALL: Final = frozenset({"deploys", "done", "pods"})  # where no product is named
_OF_NO_PRODUCT: Final = frozenset(
    {"greeting", "thanks", "help", "recap", "on call", "beyond", "unclear"}
)
_WHAT_FAILS: Final = re.compile(
    r"\b(?:pods?|containers?|crash\w*|restart\w*|previous|fail(?:ed|ing)|broken|culprit)\b",
    re.IGNORECASE,
)
_KIND_OF_PRODUCT: Final = re.compile(r"(?<![\w-])(database|db|cache|queue|gateway)(?![\w-])")
_NAMES_CAUSE: Final = re.compile(r"\b[Mm]ost likely cause: ")
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
    asking = _asking(request.messages[:start], question)
    found = tuple(_results(turn))
    before = [m for m in request.messages[:start] if m.role is Role.USER and m.text.strip()]
    asked = understand(
        asking, meta.products, meta.now, zone, meta.elsewhere, later=_is_later(asking, before)
    )
    decided = decided_in(turn[0].told) if turn else ()
    asked = _of_what_was_done(asked, decided)
    answered = _answered(request.messages[:start])
    if asked.topic == "figure" and not asked.also and _is_of_cluster_alone(request):
        words = "no metrics are configured, so this is what Kubernetes shows"
        asked = replace(asked, topic="pods", assumed=(*asked.assumed, words))
    culprit = _culprit(answered, meta.products)
    asked = _continued(asked, asking, before, meta, zone, culprit)
    asked = _of_its_kind(asked, asking, answered, meta)
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
        is_later=_is_later(asking, before),
        answered=answered,
    )


def _of_what_was_done(asked: ParsedQuestion, decided: Sequence[Decided]) -> ParsedQuestion:
    done = next((one for one in reversed(decided) if one.went_out), None)
    if not asked.asks_helped or asked.subject or asked.stranger or done is None:
        return asked
    words = f"you mean {plain(done.product)}, the product of the last confirmed action"
    return replace(asked, subject=done.product, assumed=(*asked.assumed, words))


def _of_its_kind(asked: ParsedQuestion, question: str, answered: str, meta: Meta) -> ParsedQuestion:
    kinds = set(_KIND_OF_PRODUCT.findall(question.lower()))
    if not kinds or any(name.lower() in question.lower() for name in meta.products):
        return asked
    named = [one for one in meta.products if one in answered]
    fitting = [one for one in named if any(_is_kind(one, kind) for kind in kinds)]
    if len(fitting) != 1:
        return asked
    words = f"you mean {plain(fitting[0])}, where the cause was found"
    before = (text for text in asked.assumed if not text.endswith(", as before"))
    asked = replace(asked, subject=fitting[0], assumed=(*before, words))
    asks_state = asked.topic == "beyond" and not asked.wish and asks_if_fine(f"is {question}")
    return replace(asked, topic="cause", part="state") if asks_state else asked


def _is_kind(product: str, kind: str) -> bool:
    short = {"database": "db"}.get(kind, kind)
    return any(part in (kind, short) for part in re.split(r"[-_.]", product.lower()))


def _answered(earlier: Sequence[Message]) -> str:
    said = (m.text for m in reversed(earlier) if m.role is Role.ASSISTANT)
    heads = (line for text in said for line in lines_of(text) if _NAMES_CAUSE.search(line))
    return next(heads, "").strip("* ")


def _culprit(answered: str, products: Sequence[str]) -> str:
    """The product that the cause was found in; empty where none or several are named."""
    named = [
        one for one in products if re.search(rf"(?<![\w-]){re.escape(one)}(?![\w-])", answered)
    ]
    return named[0] if len(named) == 1 else ""


def _of_culprit(asked: ParsedQuestion, question: str) -> bool:
    """Whether it is about the failing product, rather than the previous subject."""
    return asked.topic == "pods" or (asked.topic == "logs" and bool(_WHAT_FAILS.search(question)))


def _is_of_cluster_alone(request: CompleteRequest) -> bool:
    tools = {one.name for one in request.tools}
    return "core__find_metrics" not in tools and "core__sweep_cluster" in tools


def _is_later(asking: str, before: Sequence[Message]) -> bool:
    return any(m.text != asking and not is_statement(m.text) for m in before)


def _continued(
    asked: ParsedQuestion,
    question: str,
    earlier: Sequence[Message],
    meta: Meta,
    zone: str,
    culprit: str,
) -> ParsedQuestion:
    """A question without a product continues with the previous question's product.

    A question about the incident continues with the incident's product, not with one mentioned
    since. A question about deploys or actions continues only with "of it". "Since when" also reuses
    the time.
    """
    if asked.topic in _OF_ALL and not asked.stranger and not _OF_IT.search(question):
        return asked
    if culprit and not asked.subject and not asked.stranger and _of_culprit(asked, question):
        words = f"you mean {plain(culprit)}, where the cause was found"
        return replace(asked, subject=culprit, assumed=(*asked.assumed, words))
    if asked.topic in _OF_NO_PRODUCT or asked.stranger:
        return told_apart(asked, question, meta)
    asking = [m for m in earlier if not is_statement(m.text) and m.text != question]
    now = meta.now if asked.asks_when and asked.start is None else None
    understood = [
        (understand(m.text, meta.products, now, zone, meta.elsewhere, later=m is not asking[0]), m)
        for m in asking
    ]
    newest = understood[::-1]
    if asked.subject:
        return told_apart(_of_incident(asked, question, [one for one, _ in newest]), question, meta)
    own = [one for one in newest if one[0].topic == "cause" and one[0].part != "state"]
    if asked.topic != "cause":
        own = [one for one in newest if one[0].part != "state"]
    for before, message in [*(() if _OF_IT.search(question) else own), *newest]:
        if before.start is not None:
            asked = replace(asked, start=before.start, end=before.end, is_exact=before.is_exact)
            asked = replace(asked, is_cut=before.is_cut, assumed=before.assumed)
        if before.subject:
            words = f"you mean {before.subject}, as before"
            return replace(asked, subject=before.subject, assumed=(*asked.assumed, words))
        if is_elsewhere(before.stranger, meta):
            return told_apart(replace(asked, stranger=before.stranger), message.text, meta)
    return asked


def _of_incident(
    asked: ParsedQuestion, question: str, newest: Sequence[ParsedQuestion]
) -> ParsedQuestion:
    """Whether the product that the thread is about is fine, is whether the incident is over."""
    about = (one.subject for one in newest if one.topic == "cause" and one.part != "state")
    is_same = asked.subject == next((one for one in about if one), "")
    is_over = asked.part == "state" and not asked.thought and is_same and asks_if_fine(question)
    return replace(asked, part="over") if is_over else asked


def _asking(earlier: Sequence[Message], question: str) -> str:
    if not states_fact(question):
        return question
    said = (m.text for m in reversed(earlier) if m.role is Role.USER and m.text.strip())
    return next((text for text in said if not is_statement(text)), question)


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
