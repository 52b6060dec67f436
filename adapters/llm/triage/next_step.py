"""What people are to do next: the last sentences of an answer that names a cause."""

import re
from typing import Final

from adapters.llm.decided import Decided
from adapters.llm.triage.case import Case, Seen, Signals, plain
from adapters.llm.triage.done import decision_told
from adapters.llm.triage.evidence import PROPOSE
from adapters.llm.triage.judgement import Judgement
from adapters.llm.triage.linked import is_linked
from adapters.llm.triage.order import refusal
from adapters.llm.triage.plan import (
    decided_before,
    left_open,
    open_proposal,
    worth_rolling_back,
)
from adapters.llm.triage.telling import over_text
from adapters.llm.triage.undone import TELLS_AFTER, Undone, can_tell

_OVER: Final = "Since it is over, nothing is proposed. Ask me again if it comes back."
_OVER_THEN: Final = (
    "It was over by the end of that time, so nothing is proposed. Ask me how it is now."
)
# As the tool words it where another thread was quicker than the note beside the question.
_RAISED_MEANWHILE: Final = re.compile(
    r"the same is proposed already( in [a-z ]+): (p_[0-9a-f]+) is open until"
)


def next_step(case: Case, judgement: Judgement, signals: Signals) -> str:
    """What is proposed, was proposed or decided already, or where to look. The cause is named."""
    top = judgement.suspects[0]
    product = plain(top.product)
    over = over_text(top, case.now)
    already = open_proposal(case, judgement, signals)
    if already and judgement.undone is None:
        return f"{over}{' ' if over else ''}{_already(product, *already)}"
    decided = decided_before(case, judgement, signals)
    if decided is not None and judgement.undone is None:
        return _decided_before(case, decided, is_over=bool(over) and not case.is_past)
    proposed = next((s for s in case.seen if s.tool == PROPOSE), None)
    if proposed is not None:
        return _proposed(proposed, judgement)
    if over and judgement.undone is None:
        return _OVER_THEN if case.is_past else _OVER
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


def _proposed(proposed: Seen, judgement: Judgement) -> str:
    top = judgement.suspects[0]
    product = plain(top.product)
    if proposed.ok:
        unknown = left_open(top.deploy) if top.deploy else ""
        if proposed.result.get("awaits_confirmation") is False:
            return (
                f"I would propose a rollback of {product}, but nobody can confirm one here: ask in a "
                f"channel to get a card. {unknown}"
            ).rstrip()
        return (
            f"A rollback of {product} is proposed below. {unknown}"
            "Nothing happens unless somebody with the role confirms it."
        )
    if same := _RAISED_MEANWHILE.search(proposed.text("message")):
        return _already(product, same[2], same[1])
    return f"A rollback could not be proposed here: {refusal(proposed)} [{proposed.mark}]."


def _already(product: str, name: str, where: str) -> str:
    card = f"{where}; it is linked below" if where else " above in this thread"
    return (
        f"A rollback of {product} is proposed already ({name}): its card is{card}. Nothing happens "
        "unless somebody with the role confirms it."
    )


def _decided_before(case: Case, decided: Decided, *, is_over: bool) -> str:
    told = decision_told(decided, case.now)
    if decided.how == "rejected":
        again = f"{plain(decided.action)} {plain(decided.product)}"
        return (
            f"{told}, and no deploy came since: so I do not propose it again by myself. "
            f"Write `propose {again}` for a new card."
        )
    if is_over:
        return f"{told}. {_OVER}"
    again = f"{told}; no deploy came since, so it is not proposed again."
    if case.is_past or not decided.then.startswith("; succeeded"):
        return f"{again} What stands above may be of the time before it: ask about the time since then."
    if case.now is None or case.now - decided.at < TELLS_AFTER:
        return (
            f"{again} It is too short ago to tell whether it helped: ask me again in a few minutes."
        )
    return f"{again} It has not helped yet as far as I can see: look on by hand."


def _after_undoing(case: Case, over: Undone) -> str:
    when = f"The rollback went out at {over.back.at:%H:%M} UTC [{over.back.seen.mark}]"
    if can_tell(case, over):
        return f"{when}, and what came since is not calm: it was not enough. Look on."
    return f"{when}: too short ago to tell whether it helped. Ask me again in a few minutes."
