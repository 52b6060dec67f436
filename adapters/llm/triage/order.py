"""A person asks for an action ("restart checkout"): it is proposed as a card, and never carried out."""

import re
from collections.abc import Iterator
from typing import Final

from adapters.llm.triage.case import Case, SeenResult, plain
from adapters.llm.triage.evidence import PROPOSE
from adapters.llm.triage.spelling import spelled_out
from adapters.llm.triage.surroundings import Wish
from tools.errors import ToolErrorCode

_AGAIN: Final = re.compile(
    r"\bagain\b|\bonce more\b|\banew\b|\b(?:another|new) (?:proposal|card)\b"
)
_VERB: Final = re.compile(r"\b([a-z]+)\b")
_SAME: Final = {"reboot": "restart", "bounce": "restart", "revert": "rollback", "undo": "rollback"}
_POLITE_WORDS: Final = (
    "please can could would will you we i the a kortex just now hey ok okay "
    "so and then want need to like propose go ahead let us try"
)
_POLITE: Final = frozenset(_POLITE_WORDS.split())
_ANY_ACTION: Final = frozenset({"", "it", "that", "this", "again", "do", "once", "another", "new"})
_TWO_WORDS: Final = re.compile(
    r"\b(turn|roll|scale|switch|fail|shut) ?(off|on|forward|up|down|over)\b"
)
_VERSION: Final = re.compile(r"\bv?\d+\.\d+(?:\.\d+)*\b")
_MOST_NAMED: Final = 8
_CLAUSE_END: Final = re.compile(r"; |\. |\.$")
# Formatting, links and mentions need one of these characters; the colon of a clock time stays.
_NOT_PLAIN: Final = re.compile(r"(?!(?<=\d\d):\d\d)[^\w\s.,;%()'-]|_")
_MOST_REASON: Final = 200  # characters


def wishes(case: Case) -> Iterator[Wish]:
    """The proposal, where the action is declared and a product is named."""
    action, product = _wanted(case)
    if not action or not product or plain(product) != product or open_card(case, action, product):
        return
    version = _VERSION.search(case.question)
    is_rollback = "rollback" in action.replace("-", "").replace("_", "")
    yield (
        PROPOSE,
        {
            "action": action,
            "product": product,
            "params": {"version": version[0]} if version and is_rollback else {},
            "rationale": "A person in this thread asked for it. Kortex did not check whether it helps.",
        },
    )


def order_lines(case: Case) -> Iterator[str]:
    """A pointer to the card, or why there is none."""
    action, product = _wanted(case)
    if not action:
        yield _undeclared(case)
        return
    if not product:
        yield f'**For which product?** Write for example "{action} {_example(case)}".'
        return
    what = f"{action} of {plain(product)}"
    if open_card(case, action, product):
        yield f"**{what} is already proposed, and its card is open.** Nothing runs until an approver confirms it."
        return
    proposed = next((one for one in reversed(case.seen) if one.tool == PROPOSE), None)
    if proposed is None:
        yield f"**{what} was not proposed.** Proposals are not available here."
    elif not proposed.ok:
        yield f"**{what} was not proposed:** {refusal(proposed)} [{proposed.mark}]."
    else:
        yield _raised(what, proposed)


def _raised(what: str, proposed: SeenResult) -> str:
    if proposed.result.get("awaits_confirmation") is False:
        return (
            f"**I would propose {what}, but a card can only be confirmed in a channel.** Ask there."
        )
    return (
        f"**The card for {what} is below.** You asked for it; I did not check whether it helps. "
        "Nothing runs until an approver confirms it."
    )


def _wanted(case: Case) -> tuple[str, str]:
    text = spelled_out(case.question, (*case.products, *case.actions))
    named = next((one for one in case.actions if one.lower() in text), "")
    product = case.asked.subject
    verb = _verb(text)
    if not named and verb in _ANY_ACTION and _AGAIN.search(text):
        last = next((one for one in reversed(case.decided) if one.action in case.actions), None)
        if last is not None:
            return last.action, product or last.product
    fitting = (one for one in case.actions if verb and verb == re.split(r"[-_ ]", one.lower())[0])
    return named or next(fitting, ""), product


def _verb(text: str) -> str:
    words = _VERB.findall(text.replace("roll back", "rollback").replace("rolled back", "rollback"))
    verb = next((word for word in words if word not in _POLITE), "")
    return _SAME.get(verb, verb)


def _undeclared(case: Case) -> str:
    text = spelled_out(case.question, case.products)
    if not case.actions:
        return "**Nothing was proposed:** no actions are configured."
    named = ", ".join(plain(one) for one in case.actions[:_MOST_NAMED])
    verb = " ".join(words.groups()) if (words := _TWO_WORDS.search(text)) else plain(_verb(text))
    return f'**Nothing was proposed:** no action "{verb}" is declared. Configured actions: {named}.'


def _example(case: Case) -> str:
    return plain(case.products[0]) if case.products else "checkout"


def open_card(case: Case, action: str, product: str) -> bool:
    return any((one, of) == (action, product) for _, one, of, _ in case.open_proposals)


def refusal(proposed: SeenResult) -> str:
    """The first clause of the refusal, as plain words; clock times stay."""
    if proposed.text("error") == ToolErrorCode.TOOL_TIMEOUT:
        return "it could not be stored in time"
    said = _CLAUSE_END.split(proposed.text("message"), maxsplit=1)[0]
    words = " ".join(_NOT_PLAIN.sub(" ", said.replace(": ", ", ")).split())
    return words[:_MOST_REASON] or "it was refused without a reason"
