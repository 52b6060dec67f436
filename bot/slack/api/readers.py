"""Who can read a channel: its own company, or another one too. What cannot be read is not assumed."""

from typing import Final

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError

from bot.domain.channel import Readers
from bot.domain.ids import Place
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.channels import Channels

_log = structlog.stdlib.get_logger(__name__)
TTL_S: Final = 300.0  # as channel names: conversations.info is Tier 3, 50 a minute


class _Channel(BaseModel):
    """What we read of `conversations.info`; a channel of our own company alone says so itself."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", hide_input_in_errors=True, defer_build=True
    )

    is_ext_shared: bool | None = None
    is_shared: bool = False
    is_org_shared: bool = False
    is_pending_ext_shared: bool = False
    pending_shared: tuple[str, ...] = ()


class ChannelReaders:
    """`bot.ports.platform.ReadersOf` over the Web API."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    async def of(self, place: Place) -> Readers:
        """A direct message is read by whoever writes it, who was judged before it got here."""
        if place.channel.startswith("D"):
            return Readers.OWN
        try:
            return await self._ask(place.channel)
        except (SurfaceFailed, SurfaceGone, ValidationError, TimeoutError) as error:
            _log.warning("slack.readers.unknown", error=type(error).__name__)
            return Readers.UNKNOWN

    async def _ask(self, channel: str) -> Readers:
        found = _Channel.model_validate(await self._channels.told(channel, TTL_S))
        if found.is_ext_shared or (found.is_shared and not found.is_org_shared):
            return Readers.SHARED
        if found.is_pending_ext_shared or found.pending_shared:
            return Readers.PENDING
        return Readers.UNKNOWN if found.is_ext_shared is None else Readers.OWN
