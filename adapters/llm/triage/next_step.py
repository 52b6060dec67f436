"""What people are to do next: the last sentences of an answer that names a cause."""

import re
from typing import Final

from adapters.llm.decided import Decided
from adapters.llm.triage.case import Case, SeenResult, Signals, plain
from adapters.llm.triage.done import decision_sentence
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

_OVER: Final = "It is over, so I propose nothing. Ask again if it comes back."
_OVER_THEN: Final = (
    "It was over by the end of that time, so I propose nothing. Ask about the current state."
)
# As the tool words it where another thread was quicker than the note beside the question.
_RAISED_MEANWHILE: Final = re.compile(
    r"the same is proposed already( in [a-z ]+): (p_[0-9a-f]+) is open until"
)


def next_step(case: Case, judgement: Judgement, signals: Signals) -> str:
    """The open or decided proposal, or where to look. The cause is named."""
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
        nothing = ", so I propose nothing for it here" if worth_rolling_back(judgement) else ""
        asked = plain(case.subject)
        return f"I found no link between {product} and {asked}{nothing}: ask about {product}."
    if case.is_past and worth_rolling_back(judgement):
        return "I did not check the current state, so I propose nothing. Ask again without a time."
    if worth_rolling_back(judgement):
        return "Next: consider rolling that deploy back."
    return f"Next: investigate {product} manually, starting with the evidence above."


def _proposed(proposed: SeenResult, judgement: Judgement) -> str:
    top = judgement.suspects[0]
    product = plain(top.product)
    if proposed.ok:
        unknown = left_open(top.deploy) if top.deploy else ""
        if proposed.result.get("awaits_confirmation") is False:
            return (
                f"I would propose a rollback of {product}, but a card cannot be confirmed here: "
                f"ask in a channel. {unknown}"
            ).rstrip()
        return (
            f"A rollback of {product} is proposed below. {unknown}"
            "Nothing runs until an approver confirms it."
        )
    if same := _RAISED_MEANWHILE.search(proposed.text("message")):
        return _already(product, same[2], same[1])
    return f"A rollback could not be proposed here: {refusal(proposed)} [{proposed.mark}]."


def _already(product: str, name: str, where: str) -> str:
    card = f"{where}; it is linked below" if where else " above in this thread"
    return (
        f"A rollback of {product} is already proposed ({name}). Its card is{card}. Nothing runs "
        "until an approver confirms it."
    )


def _decided_before(case: Case, decided: Decided, *, is_over: bool) -> str:
    told = decision_sentence(decided, case.now)
    if decided.how == "rejected":
        again = f"{plain(decided.action)} {plain(decided.product)}"
        return (
            f"{told}, with no deploy since, so I do not propose it again. "
            f"Write `propose {again}` for a new card."
        )
    if is_over:
        return f"{told}. {_OVER}"
    again = f"{told}, with no deploy since, so I do not propose it again."
    if case.is_past or not decided.then.startswith("; succeeded"):
        return f"{again} The evidence above may be older: ask about the time since then."
    if case.now is None or case.now - decided.at < TELLS_AFTER:
        return f"{again} It is too early to say whether it helped. Ask again in a few minutes."
    return f"{again} I see no improvement yet. Investigate manually."


def _after_undoing(case: Case, over: Undone) -> str:
    when = f"The rollback went out at {over.back.at:%H:%M} UTC [{over.back.seen.mark}]"
    if can_tell(case, over):
        return f"{when}, and the problem has not ended since. Investigate further."
    return f"{when}. It is too early to say whether it helped. Ask again in a few minutes."
