"""Notices about other companies that can read an answer, and the refusal in such channels."""

from collections.abc import Sequence
from typing import Final

from bot.domain.channel import Readers

_TOLD: Final = {
    Readers.SHARED: "this channel is shared with another company: its people can read this answer",
    Readers.PENDING: (
        "this channel is about to be shared with another company: its people will be able to read this answer"
    ),
    Readers.UNKNOWN: (
        "I could not check whether this channel is shared with another company: assume that its "
        "people can read this answer"
    ),
}
_WHY: Final = {
    Readers.SHARED: "is shared with another company",
    Readers.PENDING: "is about to be shared with another company",
    Readers.UNKNOWN: "may be shared with another company, which I could not check",
}


def visibility_notice(readers: Readers) -> Sequence[str]:
    """One notice in a shared channel; none in an internal one."""
    return [_TOLD[readers]] if readers in _TOLD else []


def refusal_in(readers: Readers) -> str:
    """The answer where none is given in such channels; empty: it is one's own."""
    if readers not in _WHY:
        return ""
    return (
        f"I do not answer here: this channel {_WHY[readers]}, and `external_channels` forbids "
        "it. Ask in an internal channel or in a direct message."
    )
