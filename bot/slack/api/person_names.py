"""People's names by id, for texts in which a mention would notify or be escaped. Best effort."""

from collections.abc import Callable

from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.calls import SlackCalls
from bot.slack.api.fresh import Fresh

_TTL_S = 300.0


class PersonNames:
    """Asks `users.info`, keeps names for five minutes."""

    def __init__(self, api: SlackCalls, clock: Callable[[], float]) -> None:
        self._api = api
        self._names = Fresh(self._ask, clock)

    async def name(self, user: str) -> str:
        """The display name, or the id when Slack does not say."""
        try:
            return await self._names.get(user, _TTL_S) or user
        except (SurfaceFailed, SurfaceGone, TimeoutError):
            return user

    async def _ask(self, user: str) -> str:
        answer = await self._api.call("users.info", user=user)
        found = answer.get("user")
        if not isinstance(found, dict):
            return ""
        profile = found.get("profile")
        shown = profile.get("display_name") if isinstance(profile, dict) else None
        names = (shown, found.get("real_name"), found.get("name"))
        return next((name for name in names if isinstance(name, str) and name), "")
