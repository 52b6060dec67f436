"""Questions about a product of another channel: checked if allowed, else refused.

The tools decide whether it may be read. The text here never reveals which products other channels
have, nor which channels exist.
"""

import re
from dataclasses import replace
from typing import Final

from adapters.llm.messages import Meta
from adapters.llm.triage.meaning import KNOWN_WORDS
from adapters.llm.triage.names import plain
from adapters.llm.triage.question import ParsedQuestion

# What people call a part of their system; no product has to be called so to be asked about.
_PART: Final = re.compile(
    r"(?:db|databases?|cache|queue|broker|network|dns|disk|storage|cluster|nodes?|pods?|api|apis|apps?"
    r"|services?|servers?|sites?|website|pages?|homepage|frontend|backend|platform|load|traffic"
    r"|deploy\w*|release|rollout)"
)
# These words mean this channel's products, in spite of any other name.
_OWN: Final = re.compile(r"\b(?:it|this|we|us|our|everything|all)\b", re.IGNORECASE)
_MOST_NAMES: Final = 5


def is_elsewhere(name: str, meta: Meta) -> bool:
    """Whether another channel is about a product of that name."""
    return bool(name) and name.lower() in {each.lower() for each in meta.elsewhere}


def with_foreign_notice(asked: ParsedQuestion, question: str, meta: Meta) -> ParsedQuestion:
    """The same where no stranger is named or the channel has no list of its own.

    Else the stranger is the subject where all may be read; it is said and nothing looked at where it is
    another channel's, or where its logs are wanted; it is said before the rest otherwise.
    """
    name = asked.stranger
    if not name or not meta.products:
        return asked
    is_part = _PART.fullmatch(name) is not None and not is_elsewhere(name, meta)
    own = f'"{plain(name)}" is not one of this channel\'s products ({_own(meta)})'
    is_meant = not is_part or asked.topic == "logs"
    if meta.reads_all and is_meant and plain(name) == name:
        known = next((each for each in meta.elsewhere if each.lower() == name), name)
        return replace(asked, subject=known, apart=f"{own}, but this channel may read it.")
    if not meta.reads_all and is_meant and _is_all(asked, question, meta):
        return replace(
            asked,
            topic="outside",
            apart=(
                f"{own}, so I did not check it. Ask in its own channel, add it to `products` of "
                'this channel in `[[channels]]`, or set `reading = "all"` there to allow every product.'
            ),
        )
    asks_nothing_known = asked.topic == "beyond" and not asked.wish
    if (asked.part in {"state", "onset"} or asks_nothing_known) and not asked.thought:
        return replace(asked, topic="outside", apart=f"{own}, so I did not check it.")
    # "the shop" describes the whole system; "the ghost" is a name.
    is_described = name in KNOWN_WORDS and re.search(
        rf"\b(?:the|our|my|a|an)\s+{re.escape(name)}\b", question, re.IGNORECASE
    )
    left_out = "" if is_part or is_described else name
    return replace(asked, apart=f"{own}, so this answer covers those.", left_out=left_out)


def _is_all(asked: ParsedQuestion, question: str, meta: Meta) -> bool:
    """Whether that is the whole answer: findings of other products would mislead.

    Deploys name their products; figures, pods and log lines are taken for those of the name.
    """
    if asked.topic in {"logs", "figure", "pods"}:
        return True
    return is_elsewhere(asked.stranger, meta) and not _OWN.search(question)


def _own(meta: Meta) -> str:
    more = len(meta.products) - _MOST_NAMES
    names = ", ".join(plain(each) for each in meta.products[:_MOST_NAMES])
    return f"{names} and {more} more" if more > 0 else names
