"""The first line of an answer that no model gave, because none could be asked."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
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
# "anthropic: no answer", "anthropic answered 529: overloaded".
_SAID: Final = re.compile(rf"({'|'.join(_NAMES)})(?:: | answered (?=[45]\d\d\b))(.*)", re.DOTALL)
_REASON_CHARS: Final = 80
_STATUS: Final = re.compile(r"\b[45]\d\d\b")
_CLAUSE_ENDS: Final = re.compile(r"[.,;:()\[\]]")
_MOST: Final = 3

Emit = Callable[[TurnEvent], None]


def preface(rounds: Sequence[RoundRecord], now: datetime) -> str:
    """Which provider does not answer, why and since when; empty without a failure.

    Times are in UTC, as in the whole answer.
    """
    said: dict[str, str] = {}
    for one in rounds:
        since = dict(one.failing)
        for notice in one.notices:
            if found := _SAID.match(notice):
                told = (_reason(found[2]), _since(since.get(found[1]), now))
                said.setdefault(_NAMES[found[1]], " ".join(filter(None, told)))
    if not said:
        return ""
    named = [f"{name} {_verb(why)}{f' ({why})' if why else ''}" for name, why in said.items()]
    return f"{'; '.join(named[:_MOST])}. This is what I measured without a model.\n\n"


def _verb(why: str) -> str:
    is_refused = why.startswith(("HTTP 401", "HTTP 403"))
    return "refuses its API key" if is_refused else "is not answering"


def _reason(why: str) -> str:
    """The reason without its figures, which no result supports.

    The whole reason is below the answer.
    """
    status = _STATUS.search(why)
    if status is not None:
        return f"HTTP {status[0]}"
    clause = _CLAUSE_ENDS.split(" ".join(why.split()))[0].strip()
    is_told = clause and not any(one.isdigit() for one in clause)
    return clause[:_REASON_CHARS] if is_told else ""


def _since(at: datetime | None, now: datetime) -> str:
    if at is None:
        return ""
    at = at.astimezone(UTC)
    day = "" if at.date() == now.astimezone(UTC).date() else f"{at:%Y-%m-%d} "
    return f"since {day}{at:%H:%M} UTC"


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
