"""What people are to do next: the last sentences of an answer that names a cause."""

import re
from typing import Final

from adapters.llm.decided import Decided
from adapters.llm.triage.case import Case, Seen, Signals, plain
from adapters.llm.triage.judgement import Judgement
from adapters.llm.triage.linked import is_linked
from adapters.llm.triage.plan import (
    PROPOSE,
    decided_before,
    left_open,
    open_proposal,
    worth_rolling_back,
)
from adapters.llm.triage.telling import clock, over_text
from adapters.llm.triage.undone import Undone, can_tell
from tools.errors import ToolErrorCode

_CLAUSE_END: Final = re.compile(r"; |\. |\.$")
# Formatting, links and mentions need one of the others; the colon of a clock time stays.
_NOT_PLAIN: Final = re.compile(r"(?!(?<=\d\d):\d\d)[^\w\s.,;%()'-]|_")
_MOST_REASON: Final = 200  # characters


def next_step(case: Case, judgement: Judgement, signals: Signals) -> str:
    """What is proposed, was proposed or decided already, or where to look. The cause is named."""
    top = judgement.suspects[0]
    product = plain(top.product)
    over = over_text(top, case.now)
    already = open_proposal(case, judgement, signals)
    if already and judgement.undone is None:
        return (
            f"{over}{' ' if over else ''}A rollback of {product} is proposed already ({already}): its card is above in this "
            "thread. Nothing happens unless somebody with the role confirms it."
        )
    decided = decided_before(case, judgement, signals)
    if decided is not None and judgement.undone is None:
        return _decided_before(case, decided)
    proposed = next((s for s in case.seen if s.tool == PROPOSE), None)
    if proposed is not None and proposed.ok:
        return (
            f"A rollback of {product} is proposed below. {left_open(top.deploy) if top.deploy else ''}"
            "Nothing happens unless somebody with the role confirms it."
        )
    if proposed is not None:
        return f"A rollback could not be proposed here: {_refusal(proposed)} [{proposed.mark}]."
    if over and judgement.undone is None:
        return "Since it is over, nothing is proposed. Ask me again if it comes back."
    if judgement.undone is not None:
        return _after_undoing(case, judgement.undone)
    if not is_linked(case, judgement):
        nothing = ", so nothing is proposed for it here" if worth_rolling_back(judgement) else ""
        asked = plain(case.subject)
        return f"Nothing that I saw links {product} to {asked}{nothing}: ask about {product}."
    if case.is_past and worth_rolling_back(judgement):
        return (
            "How it is now was not looked at, so nothing is proposed: ask again without that time."
        )
    if worth_rolling_back(judgement):
        return "Next: consider rolling that deploy back."
    return f"Next: look into {product} by hand, starting with the evidence above."


def _refusal(proposed: Seen) -> str:
    """The first clause of what was answered, as plain words; clock times stay."""
    if proposed.text("error") == ToolErrorCode.TOOL_TIMEOUT:
        return "it could not be stored in time"
    said = _CLAUSE_END.split(proposed.text("message"), maxsplit=1)[0]
    words = " ".join(_NOT_PLAIN.sub(" ", said.replace(": ", ", ")).split())
    return words[:_MOST_REASON] or "it was refused without a reason"


def _decided_before(case: Case, decided: Decided) -> str:
    then = decided.then.replace("; succeeded", ", and is done").replace(
        "; running", ", and is running"
    )
    told = (
        f"A rollback of {plain(decided.product)} was {decided.how} by {plain(decided.by)} at "
        f"{clock(decided.at, case.now)}{then}"
    )
    if decided.how == "rejected":
        return f"{told}, and no deploy came since: so it is not proposed again. Look on by hand."
    return (
        f"{told}; no deploy came since, so it is not proposed again. What stands above may be of the "
        "time before it: ask about the time since then."
    )


def _after_undoing(case: Case, over: Undone) -> str:
    when = f"The rollback went out at {over.back.at:%H:%M} UTC [{over.back.seen.mark}]"
    if can_tell(case, over):
        return f"{when}, and what came since is not calm: it was not enough. Look on."
    return f"{when}: too short ago to tell whether it helped. Ask me again in a few minutes."
