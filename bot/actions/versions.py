"""What a card warns of: an edited proposal names a version that no deploy record knows."""

import asyncio
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Final

import orjson

from bot.domain.proposal import Proposal, ProposalState
from tools.capabilities import Deploys, Interval
from tools.errors import ToolError

HISTORY: Final = timedelta(days=90)
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
    """Looks an edited version up. Raises nothing of its own; a slow look-up ends after 1.5 s."""

    def __init__(self, deploys_of: DeploysOf) -> None:
        self._deploys_of = deploys_of

    async def warning(self, row: Proposal) -> str:
        """Plain text; empty for a known version, a product without records, and any other card."""
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
        if not found or version in known:
            return ""
        return _UNKNOWN.format(version=version, product=row.product, days=HISTORY.days)


def _version(row: Proposal) -> str:
    if row.state is not ProposalState.PENDING or not row.supersedes:
        return ""
    params = orjson.loads(row.params)
    named = params.items() if isinstance(params, dict) else ()
    versions = [value for name, value in named if _OF_A_VERSION.fullmatch(name)]
    return next((one for one in versions if isinstance(one, str)), "")
