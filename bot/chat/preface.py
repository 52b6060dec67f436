"""The first line of an answer that no model gave, because none could be asked."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from bot.chat.round_record import RoundRecord
from bot.domain.turn_events import TextDelta, TurnEvent

_NAMES: Final = {
    "anthropic": "Claude",
    "openai": "OpenAI",
    "ollama": "Ollama",
    "bedrock": "Bedrock",
    "nirmata": "Nirmata",
}
_REASON_CHARS: Final = 80
_STATUS: Final = re.compile(r"\b[45]\d\d\b")
_CLAUSE_ENDS: Final = re.compile(r"[.,;:()\[\]]")
_MOST: Final = 3

Emit = Callable[[TurnEvent], None]


def preface(rounds: Sequence[RoundRecord]) -> str:
    """Who is not answering, and why, from what the rounds so far told; empty where nobody failed."""
    said: dict[str, str] = {}
    for notice in (each for one in rounds for each in one.notices):
        provider, colon, why = notice.partition(": ")
        if colon and provider in _NAMES:
            said.setdefault(_NAMES[provider], _reason(why))
    if not said:
        return ""
    told = "; ".join(f"{name} is not answering{why}" for name, why in [*said.items()][:_MOST])
    return f"{told}. This is what I measured without a model.\n\n"


def _reason(why: str) -> str:
    """In brackets, without a figure that no result holds; the whole of it stands below the answer."""
    status = _STATUS.search(why)
    if status is not None:
        return f" (HTTP {status[0]})"
    clause = _CLAUSE_ENDS.split(" ".join(why.split()))[0].strip()
    is_told = clause and not any(one.isdigit() for one in clause)
    return f" ({clause[:_REASON_CHARS]})" if is_told else ""


def led_by(words: str, emit: Emit) -> Emit:
    """`words` before the first text."""
    waiting = words

    def told(event: TurnEvent) -> None:
        nonlocal waiting
        if waiting and isinstance(event, TextDelta):
            emit(TextDelta(waiting))
            waiting = ""
        emit(event)

    return told
