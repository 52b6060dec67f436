"""What a card warns of: a version that was rolled back, or, after an edit, one never deployed."""

import asyncio
import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import orjson

from bot.domain.change import chosen_version
from bot.domain.proposal import Proposal, ProposalState
from tools.capabilities import Deploy, Deploys, Interval
from tools.errors import ToolError

HISTORY: Final = timedelta(days=90)
_ACTOR_CHARS: Final = 60
TIMEOUT_S: Final = 1.5  # a card has three seconds in all
_UNREAD: Final = "Kortex could not read the deploy history, so it did not check version {version}."
_UNKNOWN: Final = (
    "Version {version} was not deployed to {product} in the last {days} days, as far as Kortex "
    "knows."
)

_OF_A_VERSION: Final = re.compile("(?:[Vv]|.*[_-]v|.*[a-z]V)ersion")

# The deploy records that the proposal's channel reads; None: none are configured.
DeploysOf = Callable[[Proposal], Deploys | None]


class VersionCheck:
    """Looks a card's version up. Raises nothing of its own; a slow look-up ends after 1.5 s."""

    def __init__(self, deploys_of: DeploysOf) -> None:
        self._deploys_of = deploys_of

    async def warning(self, row: Proposal) -> str:
        """Plain text. Empty if the version is fine, and if nothing about it is recorded."""
        version = _version(row)
        deploys = self._deploys_of(row) if version else None
        if not version or deploys is None:
            return ""
        history = Interval(row.created_at - HISTORY, row.expires_at)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                found = await deploys.between(row.product, history)
        except (ToolError, TimeoutError):
            return _UNREAD.format(version=version)
        known = {name for each in found for name in (each.version, each.previous_version)}
        if not found or version in known or not row.supersedes:
            removal = _removal(version, found)
            return _removed(version, removal, row.created_at) if removal else ""
        return _UNKNOWN.format(version=version, product=row.product, days=HISTORY.days)


def _version(row: Proposal) -> str:
    if row.state is not ProposalState.PENDING:
        return ""
    params = orjson.loads(row.params)
    named = params.items() if isinstance(params, dict) else ()
    versions = [value for name, value in named if _OF_A_VERSION.fullmatch(name)]
    return next((one for one in versions if isinstance(one, str)), "") or chosen_version(row)


def _removal(version: str, newest_first: Sequence[Deploy]) -> Deploy | None:
    """The rollback that ended a version, None if it ran to an upgrade or was deployed again."""
    went = [each for each in newest_first if each.status != "failed"]
    for place, back in enumerate(went):
        if back.version == version:
            return None
        older = went[place + 1 :]
        ended = back.previous_version or (older[0].version if older else "")
        if ended != version:
            continue
        start = next((n for n, each in enumerate(older) if each.version == version), len(older))
        before = {
            name for each in older[start + 1 :] for name in (each.version, each.previous_version)
        }
        before |= {each.previous_version for each in older[start : start + 1]}
        return back if back.status == "rolled_back" or back.version in before else None
    return None


def _removed(version: str, removal: Deploy, now: datetime) -> str:
    when = (
        f"{removal.at:%H:%M}" if removal.at.date() == now.date() else f"{removal.at:%Y-%m-%d %H:%M}"
    )
    by = f" by {removal.actor[:_ACTOR_CHARS]}" if removal.actor else ""
    return f"{version} was rolled back at {when} UTC{by}."
