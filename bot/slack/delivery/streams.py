"""Slack's own streams: start, append, stop, each within its allowance.

The first refusal decides whether the workspace has them.
"""

from collections.abc import Sequence
from typing import Literal

import structlog
from pydantic import JsonValue

from bot.domain.ids import ChannelId, MessageTs, Person, Place
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.calls import SlackCalls
from bot.slack.api.web_api import LockedOut, Refused, Unreachable
from bot.slack.delivery.outbox import Mark, Pictures
from bot.slack.delivery.scheduler import BackoffCalls, EditScheduler
from bot.slack.text.blocks import Block

_log = structlog.stdlib.get_logger(__name__)

StreamSetting = Literal["auto", "native", "edit"]

# https://docs.slack.dev/reference/methods/chat.startStream, errors: what says no for every answer.
NEVER_HERE = frozenset(
    ["access_denied", "deprecated_endpoint", "enterprise_is_restricted", "feature_not_enabled",
     "method_deprecated", "missing_scope", "no_permission", "not_allowed_token_type",
     "team_access_not_granted", "unknown_method"]
)  # fmt: skip


class Streams:
    """Streams of one workspace. `edit` never starts one; `native` tries for every answer."""

    def __init__(
        self,
        api: SlackCalls,
        scheduler: EditScheduler,
        setting: StreamSetting = "auto",
        pictures: Pictures | None = None,
    ) -> None:
        self.scheduler = scheduler
        self._pictures = pictures or Pictures()
        self._api = BackoffCalls(api, scheduler)
        self._setting: StreamSetting = setting
        self._is_refused = setting == "edit"

    def may_begin(self, place: Place, reader: Person) -> bool:
        """Whether a stream may begin; True takes its allowance.

        Slack streams only replies to a person.
        """
        is_somebody = bool(reader.user) and reader.is_somebody
        is_possible = not self._is_refused and bool(place.thread_ts) and is_somebody
        return is_possible and self.scheduler.take_stream()

    async def begin(
        self, place: Place, reader: Person, mode: str, chunks: Sequence[Block]
    ) -> MessageTs | None:
        """Start a streamed message; None if Slack refuses.

        Raises LockedOut, and Unreachable, after which the message may exist.
        """
        arguments: dict[str, JsonValue] = {
            "channel": place.channel,
            "thread_ts": place.thread_ts,
            "recipient_user_id": reader.user,
            "recipient_team_id": reader.team,
            "task_display_mode": mode,
            "chunks": list[JsonValue](chunks),
        }
        try:
            answer = await self._api.call("chat.startStream", **arguments)
        except (LockedOut, Unreachable):
            raise
        except Refused as refused:
            self._note(refused)
            return None
        except (SurfaceGone, SurfaceFailed) as error:
            _log.info("slack.stream.not_started", error=str(error))
            return None
        return MessageTs(str(answer.get("ts", ""))) or None

    async def append(self, channel: ChannelId, ts: MessageTs, chunks: Sequence[Block]) -> None:
        """Let it grow. The caller holds the permission. Raises SurfaceGone, SurfaceFailed."""
        told = list[JsonValue](chunks)
        await self._api.call("chat.appendStream", channel=channel, ts=ts, chunks=told)

    async def end(
        self,
        channel: ChannelId,
        ts: MessageTs,
        mark: Mark,
        chunks: Sequence[Block] = (),
        blocks: Sequence[Block] = (),
    ) -> None:
        """It grows no more, and says what it is for. Raises SurfaceGone, SurfaceFailed."""
        arguments: dict[str, JsonValue] = {"channel": channel, "ts": ts, "metadata": mark.metadata}
        if chunks:
            arguments["chunks"] = list[JsonValue](chunks)
        if shown := self._pictures.shown(blocks):
            arguments["blocks"] = list[JsonValue](shown)
        await self.scheduler.stop_permit()
        try:
            await self._api.call("chat.stopStream", **arguments)
        except Refused as refused:
            plainer = self._pictures.without(shown, refused)
            if plainer is None:
                raise
            await self.end(channel, ts, mark, chunks, plainer)

    def _note(self, refused: Refused) -> None:
        if refused.code in NEVER_HERE and self._setting == "auto":
            self._is_refused = True
            _log.warning("slack.streams.refused", error=str(refused), shown_by="edits")
        else:
            _log.info("slack.stream.not_started", error=str(refused))
