"""Which questions need evidence, and when an answer without evidence is not accepted.

Every question needs it, except greetings, thanks, questions about Kortex or about terms, and, after
an answer, questions about that answer. Until there is evidence, a model's text is not shown, so
that no answer is taken back in front of people.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from adapters.llm.messages import Message, Role, ToolSpec
from adapters.llm.stated import is_statement
from bot.domain.budget import NO_MODEL
from bot.domain.claims import FROM_ATTACHMENT, Claim, ClaimState
from bot.domain.turn_events import Evidence, RoundReplaced, RoundStarted, TextDelta, TurnEvent
from tools.core.all import core_tools
from tools.cursor import CursorSigner
from tools.records import ToolOutcome

_LONGEST_COURTESY: Final = 80
_COURTESY: Final = re.compile(
    r"\W*(?:(?:(?:good|great|nice) (?:job|bot|work|one|catch)|well done|hi|hello|hey|hiya|good (?:morning|afternoon|evening|night)|thanks?|thank you|thx|ty|cheers|great|nice|cool|"
    r"perfect|awesome|ok|okay|k|fine|got it|understood|makes sense|will do|done|never ?mind|nvm|sorry|bye|see you|lgtm|"
    r"yes|no|yep|nope|sure|agreed|(?:that )?helps?|that helped|test|ping|are you (?:there|up|alive))"
    r"(?: (?:you|so much|very much|a lot|again|all|everyone|team|there|kortex|bot|for (?:that|this|the help|now|looking)|that helps?))*[\s,.!:;)(-]*)+\W*",
    re.IGNORECASE,
)
_ABOUT_KORTEX: Final = re.compile(
    r"\W*(?:help|(?:who|what) are you|what (?:can|do) you (?:do|see|know|look at)|what is kortex|how (?:do|can|should) (?:i|we) "
    r"(?:use|ask) (?:you|kortex)|which tools (?:do you have|can you use|are there)|how do you work)\W*",
    re.IGNORECASE,
)
_ABOUT_A_TERM: Final = re.compile(
    r"\W*(?:what(?:['’]s| is| are) an? (?:[a-z-]+ ?){1,4}|what does (?:the term )?[\"'`]?[\w ]{1,30}[\"'`]? (?:mean|stand for)|"
    r"(?:explain|define) what an? (?:[a-z-]+ ?){1,4} is)\W*",
    re.IGNORECASE,
)
_ABOUT_WHAT_WAS_SAID: Final = re.compile(
    r"\b(?:summar(?:y|ise|ize)\w*|tl;?dr|shorter|in (?:one|two|a few|other|plain|simple) (?:lines?|sentences?|words?)|rephrase|reword|"
    r"translate|in (?:english|german|french|spanish|italian|japanese)|what (?:do|did|does) (?:you|that|this|it|E\d+) mean|explain (?:that|this|it|E\d+)|"
    r"why do you (?:say|think|believe)|how (?:do|did) you know|are you sure|which evidence|say (?:that|it) again|repeat that|"
    r"write (?:that|this|it|me|us|up)|draft|post-?mortem|status (?:update|page)|hand-?over)\b",
    re.IGNORECASE,
)
_REFERS_BACK: Final = re.compile(
    r"\W*(?:and )?(?:since when|until when|which (?:one|version|host|pod|of (?:them|these|those))|what (?:was|were) (?:that|those|it)|"
    r"who (?:was|did) (?:that|it|this))\b.{0,40}",
    re.IGNORECASE,
)
_LONGEST_QUESTION: Final = 2_000  # longer questions are not small talk

REPLACED: Final = "the model cited no evidence, so its answer is hidden; this answer is rule-based"
UNCHECKED: Final = "no tool was called for this answer, so nothing in it was checked"
_BUILT_IN: Final = tuple(tool.contract for tool in core_tools(CursorSigner(bytes(32))))
# Calls of these read nothing of the systems.
_READS_NOTHING: Final = frozenset(
    c.id for c in _BUILT_IN if c.capabilities <= {"clock", "proposals"} and not c.ports
)
# With one of these an investigation without a model finds something.
_INVESTIGATES: Final = frozenset(
    c.id for c in _BUILT_IN if c.capabilities & {"kubernetes", "logs", "metrics", "traces"}
)
_CITED: Final = re.compile(r"\bE(\d{1,3})\b")
_LONGEST_QUESTION_BACK: Final = 600

_CITES: Final = re.compile(r"\[E\d")


def needs_evidence(messages: Sequence[Message]) -> bool:
    """Whether the newest message of a person needs evidence, within its conversation."""
    at = max((i for i, m in enumerate(messages) if m.role is Role.USER), default=-1)
    text = messages[at].text.strip() if at >= 0 else ""
    if len(text) > _LONGEST_QUESTION:
        return True
    if not any(each.isalnum() for each in text):  # nothing, or an emoji
        return False
    if len(text) <= _LONGEST_COURTESY and _COURTESY.fullmatch(text):
        return False
    if _ABOUT_KORTEX.fullmatch(text) or _ABOUT_A_TERM.fullmatch(text):
        return False
    earlier = messages[:at]
    if not any(m.role is Role.ASSISTANT and m.text.strip() for m in earlier):
        return True
    if _ABOUT_WHAT_WAS_SAID.search(text) or is_statement(text):
        return False
    looked = any(m.tool_result is not None and not m.tool_result.is_error for m in earlier)
    return not (looked and _REFERS_BACK.fullmatch(text))


def can_investigate(tools: Sequence[ToolSpec]) -> bool:
    """Whether these tools are enough for an investigation without a model."""
    return any(tool.name in _INVESTIGATES for tool in tools)


def has_looked(outcomes: Sequence[ToolOutcome]) -> bool:
    """Whether any call has read something of the systems."""
    return any(o.record.ok and o.record.name not in _READS_NOTHING for o in outcomes)


def may_answer(text: str, question: str, given: Sequence[Evidence]) -> bool:
    """Whether the closing words of a model that called nothing answer a question that needs evidence.

    `given` was looked at before it was asked, and carries what cites it. One that asks back and
    claims nothing is an answer too.
    """
    return _rests_on(text, given, question) or _asks_back(text, question)


def _rests_on(text: str, given: Sequence[Evidence], question: str) -> bool:
    there = {one.number for one in given if one.ok}
    if not there & {int(number) for number in _CITED.findall(text)}:
        return False
    claims = _claims(text, given, question)
    stands = any(
        claim.state is ClaimState.SUPPORTED or claim.note == FROM_ATTACHMENT for claim in claims
    )
    return stands or not any(claim.is_doubted for claim in claims)


def _asks_back(text: str, question: str) -> bool:
    text = text.strip()
    if not text.endswith("?") or len(text) > _LONGEST_QUESTION_BACK:
        return False
    claims = _claims(text, (), question)
    return not any(claim.is_doubted for claim in claims)


def _claims(text: str, given: Sequence[Evidence], question: str) -> Sequence[Claim]:
    from bot.chat.claims.answer import checked  # 1 MB that waits for the first answer

    return checked(text, given, {}, question)[1]


class HeldWords:
    """A filter before `emit` for one round. `may_cite`: there is evidence to cite."""

    def __init__(self, emit: Callable[[TurnEvent], None], *, may_cite: bool) -> None:
        self._emit = emit
        self._may_cite = may_cite
        self._holds = True
        self._held: list[str] = []

    def __call__(self, event: TurnEvent) -> None:
        if isinstance(event, RoundStarted) and event.provider == NO_MODEL:
            self.release()
        if isinstance(event, RoundReplaced):
            self._held.clear()
        if not (self._holds and isinstance(event, TextDelta)):
            self._emit(event)
            return
        self._held.append(event.text)
        # A citation arrives in pieces, so its held first characters count too.
        if self._may_cite and _CITES.search("".join(self._held[-4:])):
            self.release()

    def release(self) -> None:
        self._holds = False
        text = "".join(self._held)
        self._held.clear()
        if text:
            self._emit(TextDelta(text))

    def drop(self) -> None:
        self._held.clear()
