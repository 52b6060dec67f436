"""The end of a turn that something cut short: what it had gathered, and what people are told."""

import hashlib
from typing import Final

import structlog

from adapters.llm.messages import CompleteRequest
from bot.chat.aftermath import finished
from bot.chat.loop import Conversation
from bot.domain.session import Ask
from bot.domain.turn_events import TurnEnd, TurnFinished
from bot.ports.failures import GivenUp, StorageUnavailable
from tools.redactor import RedactionFailed, Redactor

log = structlog.get_logger(__name__)

NOTHING_STARTED: Final = (
    "the database cannot be used right now, so nothing was started; ask again in a minute"
)
CUT_SHORT: Final = (
    "the database cannot be used right now, so the answer ends here; ask again in a minute"
)
NOT_KEPT: Final = (
    "the database cannot be used right now, so this answer was not kept: "
    "the next question in this thread will not know it"
)
LOST: Final = (
    "the process that was answering is gone and no other can go on from where it stood; ask again"
)
_GAVE_UP: Final = (
    "the process that answers died three times at the same step ({step}), so the answer ends here; "
    "whoever runs Kortex finds it in the log as {reference}"
)
_BUG: Final = "internal error; whoever runs Kortex finds it in the log as {reference}"


def broken(
    ask: Ask, error: Exception, talk: Conversation | None, redactor: Redactor
) -> TurnFinished:
    """The end, which is logged; text that cannot be redacted is left out."""
    gathered = talk or Conversation(CompleteRequest("", ()))
    notice = _notice(ask, error, gathered)
    try:
        text: str = redactor.redact(gathered.text)
    except RedactionFailed:
        text = ""
    return finished(TurnEnd.FAILED, gathered, text, [notice], ())


def lost() -> TurnFinished:
    """The end of a turn whose record no process can go on from."""
    return finished(TurnEnd.FAILED, Conversation(CompleteRequest("", ())), "", [LOST], ())


def not_kept(ask: Ask, error: Exception) -> str:
    """What is said of an answer that is whole but could not be stored."""
    if isinstance(error, StorageUnavailable):
        return NOT_KEPT
    return _notice(ask, error, Conversation(CompleteRequest("", ())))


def _notice(ask: Ask, error: Exception, gathered: Conversation) -> str:
    if isinstance(error, StorageUnavailable):
        log.warning("turn_without_storage", turn=ask.turn_id, error=str(error))
        return CUT_SHORT if gathered.rounds else NOTHING_STARTED
    reference = hashlib.sha256(ask.turn_id.encode()).hexdigest()[:8]
    if isinstance(error, GivenUp):
        log.error("turn_given_up", turn=ask.turn_id, reference=reference, step=str(error))
        return _GAVE_UP.format(step=error, reference=reference)
    log.error("turn_broken", turn=ask.turn_id, reference=reference, exc_info=error)
    return _BUG.format(reference=reference)
