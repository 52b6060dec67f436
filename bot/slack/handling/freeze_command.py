"""`/kortex freeze`: stop every action, let them run again, or say how it stands. For admins.

Freezing is the one command that does not wait for its audit row: it takes effect first, and the row
is written with the switch as soon as the database can be written.
"""

from datetime import UTC
from typing import Final

from bot.domain.freeze import Freeze
from bot.ports.failures import StorageUnavailable
from bot.ports.proposals import KillSwitch
from bot.slack.text.mrkdwn import escape, visible

MAX_REASON: Final = 200

FROZEN = (
    "🧊 Frozen: no action runs, on any replica, until `/kortex freeze off`. "
    "What was sent before cannot be called back."
)
FROZEN_HERE = (
    "🧊 Frozen in this process. The database cannot be written now, so no other replica can run an "
    "action either. I keep trying to store it; only `/kortex freeze off` ends it."
)
LIFTED = "Not frozen any more: confirmed actions run again. Quiet hours and windows still hold."
NOT_LIFTED = "Still frozen: the database cannot be written now. Try again later."
UNREADABLE = "I cannot read whether actions are frozen, so none runs for now."
USAGE = "Use `/kortex freeze on [reason]`, `/kortex freeze off` or `/kortex freeze`."


async def freeze_answer(switch: KillSwitch, user: str, arguments: str) -> str:
    """Do it and say what is so now."""
    wanted, _, reason = arguments.strip().partition(" ")
    match wanted.casefold():
        case "on":
            stored = await switch.freeze(user, reason.strip()[:MAX_REASON])
            return FROZEN if stored else FROZEN_HERE
        case "off":
            return await _lift(switch, user)
        case "":
            return await _state(switch)
        case _:
            return USAGE


async def _lift(switch: KillSwitch, user: str) -> str:
    try:
        await switch.lift(user)
    except StorageUnavailable:
        return NOT_LIFTED
    return LIFTED


async def _state(switch: KillSwitch) -> str:
    try:
        freeze = await switch.state()
    except StorageUnavailable:
        return UNREADABLE
    return _words(freeze)


def _words(freeze: Freeze) -> str:
    if not freeze.on:
        return "Not frozen."
    since = f" since {freeze.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if freeze.at else ""
    why = f": {escape(visible(freeze.reason))}" if freeze.reason else ""
    return f"🧊 Frozen{since} by {escape(visible(freeze.by))}{why}."
