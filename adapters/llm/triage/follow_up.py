"""A later question of a thread, completed by what the thread said before it."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from adapters.llm.decided import Decided
from adapters.llm.messages import Message, Meta, Role
from adapters.llm.triage.intents import asks_if_fine
from adapters.llm.triage.names import plain
from adapters.llm.triage.outside import is_elsewhere, with_foreign_notice
from adapters.llm.triage.question import ParsedQuestion, understand
from tools.output import lines_of

_OF_IT: Final = re.compile(
    r"\b(?:to|of|in|for|on|with) (?:it|them)\b|\b(?:its(?! (?:back|over|fine|ok|okay|fixed|good|better|worse|down|up|still|slow|not|all)\b)|(?<!is )(?<!are )(?<!was )there(?! be\b))\b|\bdescribe (?:it|that)\b",
    re.IGNORECASE,
)
_OF_ALL: Final = frozenset({"deploys", "done", "pods"})  # where no product is named
_OF_NO_PRODUCT: Final = frozenset(
    {"greeting", "thanks", "help", "recap", "on call", "beyond", "unclear"}
)
_SINCE_DONE: Final = re.compile(
    r"\b(?:since|after) (?:the |that |we )?(?:roll(?:ed)?(?:ing)?[ -]?back|revert\w*|restart\w*|fix\w*)\b",
    re.IGNORECASE,
)
_WHAT_FAILS: Final = re.compile(
    r"\b(?:pods?|containers?|crash\w*|restart\w*|previous|fail(?:ed|ing)|broken|culprit)\b",
    re.IGNORECASE,
)
_KIND_OF_PRODUCT: Final = re.compile(r"(?<![\w-])(database|db|cache|queue|gateway)(?![\w-])")
_NAMES_CAUSE: Final = re.compile(
    r"(?:Before the rollback: )?\b[Mm]ost likely cause: .*|\bThe trouble seems to begin in .*"
)


def of_what_was_done(
    asked: ParsedQuestion, question: str, decided: Sequence[Decided], now: datetime | None
) -> ParsedQuestion:
    done = next((one for one in reversed(decided) if one.went_out), None)
    if done is None:
        return asked
    if asked.is_time_unread and now is not None and _SINCE_DONE.search(question):
        asked = replace(asked, start=done.at, end=now, is_exact=True, is_time_unread=False)
    if not asked.asks_helped or asked.subject or asked.stranger:
        return asked
    words = f"you mean {plain(done.product)}, the product of the last confirmed action"
    return replace(asked, subject=done.product, assumed=(*asked.assumed, words))


def of_its_kind(asked: ParsedQuestion, question: str, answered: str, meta: Meta) -> ParsedQuestion:
    fitting = [one for one in of_kind(question, meta.products) if one in answered]
    if len(fitting) != 1:
        return asked
    words = f"you mean {plain(fitting[0])}, where the cause was found"
    before = (text for text in asked.assumed if not text.endswith(", as before"))
    asked = replace(asked, subject=fitting[0], assumed=(*before, words))
    asks_state = asked.topic == "beyond" and not asked.wish
    return replace(asked, topic="cause", part="state") if asks_state else asked


def of_kind(question: str, products: Sequence[str]) -> Sequence[str]:
    """The products that "the database" or "the cache" can mean; none where a product is named."""
    kinds = set(_KIND_OF_PRODUCT.findall(question.lower()))
    if any(name.lower() in question.lower() for name in products):
        return []
    kinds |= {"db"} if "database" in kinds else set()
    return [one for one in products if kinds & set(re.split(r"[-_.]", one.lower()))]


def answered_cause(earlier: Sequence[Message]) -> str:
    said = (m.text for m in reversed(earlier) if m.role is Role.ASSISTANT)
    heads = (
        found[0] for text in said for line in lines_of(text) if (found := _NAMES_CAUSE.search(line))
    )
    return next(heads, "").strip("* ")


def culprit_of(answered: str, products: Sequence[str]) -> str:
    """The product that the cause was found in; empty where none or several are named."""
    named = [
        one for one in products if re.search(rf"(?<![\w-]){re.escape(one)}(?![\w-])", answered)
    ]
    return named[0] if len(named) == 1 else ""


def _of_culprit(asked: ParsedQuestion, question: str) -> bool:
    """Whether it is about the failing product, rather than the previous subject."""
    return asked.topic == "pods" or (asked.topic == "logs" and bool(_WHAT_FAILS.search(question)))


def continued(
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
        return with_foreign_notice(asked, question, meta)
    asking = [m for m in earlier if m.text != question]
    now = meta.now if asked.asks_when and asked.start is None else None
    understood = [
        (understand(m.text, meta.products, now, zone, meta.elsewhere, later=m is not asking[0]), m)
        for m in asking
    ]
    newest = understood[::-1]
    if asked.subject:
        return with_foreign_notice(
            _of_incident(asked, question, [one for one, _ in newest]), question, meta
        )
    for before, message in _candidates(asked, question, newest, culprit):
        if before.start is not None:
            asked = replace(asked, start=before.start, end=before.end, is_exact=before.is_exact)
            asked = replace(asked, is_cut=before.is_cut, assumed=before.assumed)
        if before.subject:
            words = f"you mean {before.subject}, as before"
            return replace(asked, subject=before.subject, assumed=(*asked.assumed, words))
        if is_elsewhere(before.stranger, meta):
            return with_foreign_notice(replace(asked, stranger=before.stranger), message.text, meta)
    return asked


def _candidates(
    asked: ParsedQuestion,
    question: str,
    newest: Sequence[tuple[ParsedQuestion, Message]],
    culprit: str,
) -> Sequence[tuple[ParsedQuestion, Message]]:
    """Earlier messages, the first one that names a product counts: "cpu?" after "memory of cart?".

    The thread stays with the product that it found, not with one that was asked about beside it.
    """
    if _OF_IT.search(question):
        return newest
    if asked.topic != "cause" and newest and newest[0][0].topic == asked.topic:
        return newest
    own = [one for one in newest if one[0].topic == "cause" and one[0].part != "state"]
    if culprit:
        own = [one for one in own if one[0].subject == culprit] or own[::-1]
    return [*own, *newest]


def _of_incident(
    asked: ParsedQuestion, question: str, newest: Sequence[ParsedQuestion]
) -> ParsedQuestion:
    """Whether the product that the thread is about is fine, is whether the incident is over."""
    about = (one.subject for one in newest if one.topic == "cause" and one.part != "state")
    is_same = asked.subject == next((one for one in about if one), "")
    is_over = asked.part == "state" and not asked.thought and is_same and asks_if_fine(question)
    return replace(asked, part="over") if is_over else asked
