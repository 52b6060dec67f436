"""The state of a turn in progress, and the form of calls and results in the conversation."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

import orjson

from adapters.llm.decided import decisions_said
from adapters.llm.messages import CompleteRequest, Message, Role, StopReason, ToolCall, Usage
from bot.chat.round_record import RoundRecord
from bot.domain.findings import LOOKS_AT_NOTHING
from bot.domain.ids import ProposalId
from bot.domain.turn_events import Evidence
from tools.call_limits import Spent
from tools.records import ToolOutcome

_PROPOSAL_ID: Final = re.compile(r"\bp_[0-9a-f]{24}\b")


@dataclass(slots=True)
class Conversation:
    request: CompleteRequest
    rounds: list[RoundRecord] = field(default_factory=list)
    outcomes: list[ToolOutcome] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    said: list[Message] = field(default_factory=list)
    aside: Sequence[RoundRecord] = ()  # rounds that say nothing to people: a summary
    made: Counter[str] = field(default_factory=Counter)  # calls, by what they ask
    needs_evidence: bool = False  # of the question
    falls_back: bool = False  # the model looked at nothing, and another answers
    looked: int = 0  # calls made before the model was asked

    @property
    def usage(self) -> Usage:
        return sum((r.usage for r in (*self.aside, *self.rounds)), Usage())

    @property
    def text(self) -> str:
        """The whole answer as it was shown: each round's text is a paragraph of it."""
        texts = (r.text.strip() for r in self.rounds if not r.passed_on)
        return "\n\n".join(text for text in texts if text)

    @property
    def narration(self) -> str:
        """The beginning of `text` that was said before the last result was read."""
        said = [r for r in self.rounds if not r.passed_on]
        read = [
            n
            for n, r in enumerate(said, 1)
            if any(c.name not in LOOKS_AT_NOTHING for c in r.tool_calls)
        ]
        spoke = [n for n, r in enumerate(said) if r.text.strip()]
        at = read[-1] if read else 0
        if spoke and spoke[-1] < at:
            at = spoke[-1]
        return "".join(f"{r.text.strip()}\n\n" for r in said[:at] if r.text.strip())

    @property
    def own_words(self) -> str:
        """What Kortex itself says in that text."""
        return next((r.own_words for r in self.rounds if r.own_words), "")

    @property
    def people_said(self) -> str:
        """The words of people that the turn was asked with, what they decided, and open proposals."""
        asked = [m for m in self.request.messages if m.role is Role.USER]
        told = asked[-1].told if asked else ""
        noted = [decisions_said(told), *_PROPOSAL_ID.findall(told)]
        return "\n".join([*(m.text for m in asked), *filter(None, noted)])

    @property
    def steps(self) -> int:
        """The number of rounds, without those passed on to another model."""
        return sum(not r.passed_on for r in self.rounds)

    def spend(self, call: ToolCall) -> Spent:
        """The usage before this call, for its limits; then counts the call."""
        asked = _asked(call)
        read = sum(outcome.record.bytes for outcome in self.outcomes)
        spent = Spent(self.made.total(), read, self.made[asked])
        self.made[asked] += 1
        return spent

    @property
    def cost_usd_micros(self) -> int | None:
        """The sum, or None when any round's price is unknown."""
        known = [r.cost_usd_micros for r in (*self.aside, *self.rounds)]
        return None if None in known else sum(c for c in known if c is not None)

    @property
    def proposal_ids(self) -> tuple[ProposalId, ...]:
        return tuple(ProposalId(o.proposal_id) for o in self.outcomes if o.proposal_id)


def wrap_evidence(number: int, content: str) -> str:
    """A tool result as the model reads it: numbered for citation, marked as data."""
    return (
        f'{{"evidence":"E{number}","untrusted":true,"result":{content}}}'
        if _is_json(content)
        else orjson.dumps(
            {"evidence": f"E{number}", "untrusted": True, "result": _storable(content)}
        ).decode()
    )


def _storable(text: str) -> str:
    """Text without lone surrogates, which no encoder takes."""
    return text.encode("utf-8", errors="replace").decode()


def _is_json(content: str) -> bool:
    try:
        orjson.loads(content)
    except orjson.JSONDecodeError:
        return False
    return True


def unique_ids(calls: Sequence[ToolCall], request: CompleteRequest) -> tuple[ToolCall, ...]:
    """Our own ids where a model gave none or repeated one of the conversation.

    Each call runs once and is answered once, and vendors refuse a conversation that repeats an id.
    """
    taken = {call.id for message in request.messages for call in message.tool_calls} | {""}
    unique: list[ToolCall] = []
    for call in calls:
        fresh = next(i for i in _candidate_ids(call.id) if i not in taken)
        taken.add(fresh)
        unique.append(call if fresh == call.id else replace(call, id=fresh))
    return tuple(unique)


def question_of(request: CompleteRequest) -> str:
    asked = (m.text for m in reversed(request.messages) if m.role is Role.USER)
    return next(asked, "")


def _asked(call: ToolCall) -> str:
    try:
        arguments = orjson.dumps(orjson.loads(call.arguments), option=orjson.OPT_SORT_KEYS)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return f"{call.name} {call.arguments}"
    return f"{call.name} {arguments.decode()}"


def _candidate_ids(given: str) -> Iterator[str]:
    yield given
    yield from (f"{given or 'call'}_{number}" for number in count(2))


def stop_reason(talk: Conversation) -> StopReason:
    return talk.rounds[-1].stop_reason if talk.rounds else StopReason.ERROR
