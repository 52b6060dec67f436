"""A plain first sentence to "is checkout ok now?" and "did the rollback help?", never surer than
its evidence.
"""

import re
from typing import Final

from adapters.llm.triage.case import Case, plain
from adapters.llm.triage.done import decision_sentence
from adapters.llm.triage.judgement import Judgement
from adapters.llm.triage.linked import is_linked
from adapters.llm.triage.period import framed
from adapters.llm.triage.point_in_time import came_later
from adapters.llm.triage.telling import cause_text, clock, headline
from adapters.llm.triage.undone import TELLS_AFTER
from adapters.llm.triage.weigh import Suspicion

_IF_OK: Final = re.compile(
    r"\W*(?:(?:and|so|but|ok|okay|then|now)\W+)*(?:is|are)\b[^.?!]*\b(?:ok|okay|fine|alright|healthy|normal"
    r"|usual|fixed|recovered|resolved|over|working)\b[^.?!]*\W*",
    re.IGNORECASE,
)
_DOUBTED: Final = re.compile(r"\b(?:not|never|still|or|why|wrong|ill)\b|n't\b", re.IGNORECASE)


def plain_answer(case: Case, judgement: Judgement) -> str:
    """Bold; empty where neither is asked, and where a yes would be more than was seen."""
    top = _calm(case, judgement)
    if case.asked.asks_helped:
        said = _helped(case, judgement, top)
    elif _asks_if_ok(case) and top is not None and top.over_since is not None:
        since = clock(top.over_since, case.now)
        said = f"Yes, as far as I can see: all that changed in {plain(top.product)} is back to normal since {since}."
    else:
        said = ""
    return f"**{said}**" if said else ""


def cause_line(case: Case, judgement: Judgement) -> str:
    """The cause in bold; "over" comes first, unless the plain answer said it."""
    top = judgement.suspects[0]
    gone = f" {judgement.undone.words}." if judgement.undone else ""
    is_told = _says_it_is_over(case, judgement)
    head = cause_text(top, case.now) if is_told else headline(top, case.now)
    if not is_linked(case, judgement):
        head = f"Elsewhere, {head[0].lower()}{head[1:]}"
    later = came_later(case, top)
    return f"**{later or framed(case, head)}{head if later else ''}{gone}**"


def _says_it_is_over(case: Case, judgement: Judgement) -> bool:
    return bool(plain_answer(case, judgement)) and _calm(case, judgement) is not None


def _asks_if_ok(case: Case) -> bool:
    if case.asked.symptom or case.asked.thought:
        return False
    return _IF_OK.fullmatch(case.question.strip()) is not None and not _DOUBTED.search(
        case.question
    )


def _calm(case: Case, judgement: Judgement) -> Suspicion | None:
    """The products with past trouble, if all of it is over and no check is missing."""
    top = next(iter(judgement.suspects), None)
    if judgement.verdict != "cause" or judgement.undone or top is None or case.is_past:
        return None
    if case.asked.at is not None or judgement.missing or top.over_since is None:
        return None
    if case.names_subject and top.product != case.subject:
        return None
    own = [
        one for one in judgement.suspects if one.product == top.product or not case.names_subject
    ]
    moved = [one for one in judgement.facts.moved if one.product == top.product and one.is_unusual]
    is_over = (
        all(one.over_since for one in own)
        and all(one.over_since for one in moved)
        and all(one.until for one in judgement.errors)
    )
    return top if is_over else None


def _helped(case: Case, judgement: Judgement, top: Suspicion | None) -> str:
    done = next(
        (
            one
            for one in reversed(case.decided)
            if one.how == "confirmed" and one.product == case.subject
        ),
        None,
    )
    if done is None or case.now is None or case.is_past:
        return ""
    if not done.then.startswith("; succeeded"):
        return f"I cannot say whether it helped: {_lowered(decision_sentence(done, case.now))}."
    what = "the rollback" if "rollback" in done.action else "it"
    if top is not None and top.over_since is not None:
        again = f"It is back to normal since {clock(top.over_since, case.now)}"
        at = f"{what} was confirmed at {clock(done.at, case.now)}"
        if top.over_since <= done.at:
            return f"{again}, before {at}."
        return f"{again}, after {at}; that it was {what} is not proven."
    if judgement.verdict == "healthy":
        return (
            f"{plain(case.subject)} was normal in the time that I checked; "
            f"I cannot say whether {what} is the reason."
        )
    if case.now - done.at < TELLS_AFTER:
        return f"It is too early to say whether {what} helped."
    return f"I see no sign that {what} helped."


def _lowered(text: str) -> str:
    return f"{text[0].lower()}{text[1:]}"
