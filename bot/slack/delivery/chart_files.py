"""Charts as image files in the thread, for workspaces without chart blocks. Best effort, once each.

An upload takes three calls (https://docs.slack.dev/messaging/working-with-files): get an address,
send the bytes, share the file in the thread.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import aiohttp
import structlog
from pydantic import JsonValue

from bot.domain.chart import Chart
from bot.domain.ids import Place
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.calls import SlackCalls
from bot.slack.api.web_api import Refused, Unreachable
from bot.slack.delivery.outbox import Outbox
from bot.slack.delivery.streams import NEVER_HERE
from bot.slack.text.limits import MAX_CHARTS

_log = structlog.stdlib.get_logger(__name__)
_TIMEOUT_S = 20.0
_UPLOAD_S = 15.0
# Raises SurfaceFailed where the address does not take them.
SendBytes = Callable[[str, bytes], Awaitable[None]]


@dataclass(slots=True, eq=False, repr=False)
class ChartFiles:
    """One workspace's. `paint` makes a PNG and may block; `describe` is what a screen reader says."""

    api: SlackCalls
    outbox: Outbox
    paint: Callable[[Chart], bytes]
    describe: Callable[[Chart], str]
    send_bytes: SendBytes
    _is_refused: bool = field(init=False, default=False)

    async def share(self, place: Place, charts: Sequence[Chart], key: str, oldest: str) -> None:
        """Once per `key`. `oldest` is from where on its files would be found. Never raises."""
        if self.outbox.pictures.has_charts or self._is_refused or not charts:
            return
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                known = await self.outbox.file_names(place, oldest)
                for number, chart in enumerate(charts[:MAX_CHARTS], 1):
                    name = f"chart-{hashlib.sha256(key.encode()).hexdigest()[:16]}-{number}.png"
                    if name not in known:
                        await self._upload(place, name, chart)
        except (SurfaceFailed, SurfaceGone, TimeoutError, ValueError) as error:
            if isinstance(error, Refused) and error.code in NEVER_HERE:
                self._is_refused = True
            _log.warning("slack.chart_file.not_shared", error=str(error) or type(error).__name__)

    async def _upload(self, place: Place, name: str, chart: Chart) -> None:
        png = await asyncio.to_thread(self.paint, chart)
        told = self.describe(chart)
        where = await self.api.call(
            "files.getUploadURLExternal", filename=name, length=len(png), alt_txt=told
        )
        await self.send_bytes(str(where.get("upload_url", "")), png)
        files: list[JsonValue] = [{"id": str(where.get("file_id", "")), "title": told}]
        belongs: dict[str, JsonValue] = {"channel_id": place.channel, "files": files}
        if place.thread_ts:
            belongs["thread_ts"] = place.thread_ts
        await self.api.call("files.completeUploadExternal", **belongs)


def uploader(session: aiohttp.ClientSession) -> SendBytes:
    """Sends bytes to the address that Slack gave for them. No token goes there. Raises Unreachable."""

    async def send(url: str, content: bytes) -> None:
        try:
            async with (
                asyncio.timeout(_UPLOAD_S),
                session.post(url, data=content, allow_redirects=False) as answer,
            ):
                if answer.status != 200:
                    raise Unreachable("upload", f"HTTP {answer.status}", answer.status)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise Unreachable("upload", type(error).__name__) from error

    return send
