"""Routes the deliveries of several workspaces: each goes to the Bolt app of its workspace.

They share the signing secret, or the socket, which are the app's and not a workspace's.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import structlog
from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_bolt.response import BoltResponse

from bot.domain.ids import TeamId
from bot.ports.failures import StorageUnavailable

_log = structlog.stdlib.get_logger(__name__)
_LOOK_UP_S: Final = 0.5  # of the 3 s in which Slack wants its answer


class Dispatches(Protocol):
    """What Slack's deliveries are handed to: an `AsyncApp`, or the routes to several."""

    async def async_dispatch(self, req: AsyncBoltRequest) -> BoltResponse:
        """The response to one delivery, once its listener has returned."""
        ...


# The app of a workspace, None where it is not installed. Raises StorageUnavailable.
AppOf = Callable[[TeamId], Awaitable[AsyncApp | None]]


@dataclass(slots=True, eq=False, repr=False)
class TeamApps:
    """Routes each delivery to its workspace's app. `home` gets the rest and refuses it on record.

    `acknowledged` gets the seconds that Slack waited for each answer.
    """

    home: AsyncApp
    app_of: AppOf
    acknowledged: Callable[[float], None]

    async def async_dispatch(self, req: AsyncBoltRequest) -> BoltResponse:
        """Bolt's answer, or 503 while the workspace cannot be looked up: Slack then delivers again.

        Listeners run before the answer, so Slack waits for the durable start.
        """
        begun = time.monotonic()
        try:
            return await self._answered(req)
        finally:
            self.acknowledged(time.monotonic() - begun)

    async def _answered(self, req: AsyncBoltRequest) -> BoltResponse:
        try:
            async with asyncio.timeout(_LOOK_UP_S):
                app = await self.app_of(TeamId(addressed_team(req.body)))
        except (StorageUnavailable, TimeoutError) as error:
            _log.warning("slack.workspace.lookup_failed", error=type(error).__name__)
            return BoltResponse(status=503, body="")
        return await (app or self.home).async_dispatch(req)


def addressed_team(body: Mapping[str, object]) -> str:
    """The workspace of a delivery: the one with the app, not the person's.

    Empty if the delivery names none, as for an app installed in a whole organisation.
    """
    authorizations = body.get("authorizations")
    first = authorizations[0] if isinstance(authorizations, list) and authorizations else None
    team = body.get("team")
    found = _text(first, "team_id") or _text(body, "team_id") or _text(team, "id")
    if found or team is not None:
        return found
    return _text(body.get("user"), "team_id")


def _text(value: object, name: str) -> str:
    found = value.get(name) if isinstance(value, Mapping) else None
    return found if isinstance(found, str) else ""
