"""Messages out: post, edit, delete and find them, each within its allowance, and with patience.

Every message of ours that must not be posted twice carries metadata with what it is for, and is
looked for before it is posted again:

kortex_answer  {turn, part}   part 0 is the message that is edited, 1… continue it
kortex_card    {proposal}
kortex_note    {key, part}
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TypeVar

import structlog
from pydantic import JsonValue

from bot.domain.ids import ChannelId, MessageTs, Place
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.calls import SlackCalls
from bot.slack.api.web_api import RateLimited, Refused
from bot.slack.delivery.pacing import Urgency
from bot.slack.delivery.scheduler import BackoffCalls, EditScheduler
from bot.slack.text.blocks import Block, Part

_log = structlog.stdlib.get_logger(__name__)

KINDS = frozenset({"data_visualization"})
# https://docs.slack.dev/reference/methods/chat.postMessage: what a rejected layout is called.
LAYOUT_REFUSED = frozenset(
    {"block_mismatch", "invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long"}
)
_UNSUPPORTED = "unsupported type"


class Pictures:
    """Whether the workspace shows chart blocks, learned from the first refusal.

    Shared by all senders.
    """

    def __init__(self) -> None:
        self._unknown: set[str] = set()

    @property
    def has_charts(self) -> bool:
        return "data_visualization" not in self._unknown

    def shown(self, blocks: Iterable[Block]) -> tuple[Block, ...]:
        """Those of the blocks that the workspace takes, as far as is known."""
        return tuple(block for block in blocks if block.get("type") not in self._unknown)

    def without(self, blocks: Iterable[Block], refused: Refused) -> tuple[Block, ...] | None:
        """Blocks to send after a refusal; None if no chart was among them.

        If Slack names no reason or an unsupported type, the workspace gets no charts from now on.
        If Slack names a fault in a chart, only this message loses its charts.
        """
        if refused.code not in LAYOUT_REFUSED:
            return None
        sent = self.shown(blocks)
        held = {str(block.get("type")) for block in sent} & KINDS
        if not held:
            return None
        blamed = {kind for kind in held if any(_blames(said, kind) for said in refused.messages)}
        if refused.code == "invalid_blocks" and not refused.messages:
            blamed = held
        if blamed:
            self._unknown |= blamed
            _log.warning("slack.pictures.refused", kinds=sorted(blamed), shown_by="text")
        else:
            _log.warning("slack.picture.refused", said=refused.messages[:3], error=str(refused))
        return tuple(block for block in sent if block.get("type") not in (blamed or held))


def _blames(said: str, kind: str) -> bool:
    return _UNSUPPORTED in said and kind in said


T = TypeVar("T")

ANSWER = "kortex_answer"
CARD = "kortex_card"
NOTE = "kortex_note"
# Slack's most per page, and how far back a message of ours is looked for.
_PAGE = 200
_PAGES = 10


@dataclass(frozen=True, slots=True)
class Patience:
    """How often, and how long between two tries: `backoff_s`, doubled each time.

    A 429 is waited out by the scheduler, so it does not count as a failure; that many in a row
    mean that something is wrong with our idea of the limits.
    """

    failures: int = 5
    backoff_s: float = 0.5
    rate_limits: int = 30


async def persist(patience: Patience, send: Callable[[], Awaitable[T]]) -> T:
    """Until it works. Raises SurfaceGone at once, SurfaceFailed when patience is at its end."""
    failures = limits = 0
    while True:
        try:
            return await send()
        except RateLimited:
            limits += 1
            if limits >= patience.rate_limits:
                raise
        except SurfaceFailed as failure:
            failures += 1
            if not failure.retryable or failures >= patience.failures:
                raise
            await asyncio.sleep(patience.backoff_s * 2 ** (failures - 1))


@dataclass(frozen=True, slots=True)
class Mark:
    """What a message is for. `subject` is the id of the turn, proposal or note."""

    event_type: str
    subject_key: str
    subject: str
    part: int = 0

    @property
    def name(self) -> str:
        """The same in one word, for what has no metadata yet."""
        return f"{self.event_type}:{self.subject}:{self.part}"

    @property
    def metadata(self) -> dict[str, JsonValue]:
        payload: dict[str, JsonValue] = {self.subject_key: self.subject, "part": self.part}
        return {"event_type": self.event_type, "event_payload": payload}


def answer_mark(turn: str, part: int = 0) -> Mark:
    return Mark(ANSWER, "turn", turn, part)


def card_mark(proposal: str) -> Mark:
    return Mark(CARD, "proposal", proposal)


def note_mark(key: str, part: int = 0) -> Mark:
    """Something said once."""
    return Mark(NOTE, "key", key, part)


@dataclass(frozen=True, slots=True)
class Found:
    """Messages of an answer by part: marked, streamed without a mark yet, and replaced."""

    marked: dict[int, MessageTs]
    grown: dict[int, MessageTs]
    replaced: list[MessageTs]


class Outbox:
    """Sends. One per workspace; every method raises SurfaceGone and SurfaceFailed."""

    def __init__(
        self,
        api: SlackCalls,
        scheduler: EditScheduler,
        bot_user_id: str = "",
        pictures: Pictures | None = None,
    ) -> None:
        self.scheduler = scheduler
        self.pictures = pictures or Pictures()
        self._api = BackoffCalls(api, scheduler)
        self._bot_user_id = bot_user_id

    async def post(
        self, place: Place, part: Part, mark: Mark, urgency: Urgency | None = Urgency.FINAL
    ) -> MessageTs:
        """A new message; its links and media are never unfurled.

        None where the caller holds the permission.
        """
        arguments: dict[str, JsonValue] = {
            "channel": place.channel,
            "metadata": mark.metadata,
            "unfurl_links": False,
            "unfurl_media": False,
        }
        if place.thread_ts:
            arguments["thread_ts"] = place.thread_ts

        permit = partial(self.scheduler.post_permit, place.channel)
        if urgency is not None:
            await permit(urgency)
        answer = await self._laid_out("chat.postMessage", arguments, part, permit)
        return MessageTs(str(answer.get("ts", "")))

    async def edit(
        self, channel: ChannelId, ts: MessageTs, part: Part, mark: Mark | None = None
    ) -> None:
        """Replace a message. `mark` adds missing metadata. The caller holds the permission."""
        arguments: dict[str, JsonValue] = {"channel": channel, "ts": ts}
        if mark:
            arguments["metadata"] = mark.metadata
        await self._laid_out("chat.update", arguments, part, self.scheduler.edit_permit)

    async def delete(self, channel: ChannelId, ts: MessageTs) -> None:
        """Remove a message; one already gone is fine."""
        await self.scheduler.delete_permit()
        try:
            await self._api.call("chat.delete", channel=channel, ts=ts)
        except SurfaceGone:
            return

    async def permalink(self, channel: ChannelId, ts: MessageTs) -> str:
        """The address of a message, as Slack gives it."""
        answer = await self._api.call("chat.getPermalink", channel=channel, message_ts=ts)
        return str(answer.get("permalink") or "")

    async def whisper(self, place: Place, user: str, part: Part) -> None:
        arguments: dict[str, JsonValue] = {"channel": place.channel, "user": user}
        if place.thread_ts:
            arguments["thread_ts"] = place.thread_ts
        await self._laid_out("chat.postEphemeral", arguments, part, _at_once)

    async def file_names(self, place: Place, oldest: str) -> set[str]:
        """Those of the files that we shared there since `oldest`."""
        messages = await self._thread(place, oldest)
        return {str(each.get("name", "")) for m in messages for each in _objects(m.get("files"))}

    async def find(self, place: Place, mark: Mark, oldest: str = "") -> dict[int, MessageTs]:
        """Our messages with that mark, part → ts. `oldest` bounds the search."""
        messages = await self._thread(place, oldest)
        return {part: ts for each in messages for part, ts in self._marked(each, mark)}

    async def find_answer(self, place: Place, mark: Mark, oldest: str) -> Found:
        """The same for an answer, and those of its messages that grew and carry no mark yet."""
        messages = await self._thread(place, oldest)
        marked = sorted(found for each in messages for found in self._marked(each, mark))
        return Found(
            dict(marked),  # the newest of a part: it took the place of those before
            {part: ts for each in messages for part, ts in self._grown(each, mark)},
            [ts for (part, ts), after in pairwise(marked) if part == after[0]],
        )

    async def _thread(self, place: Place, oldest: str) -> list[Mapping[str, JsonValue]]:
        method = "conversations.replies" if place.thread_ts else "conversations.history"
        arguments: dict[str, JsonValue] = {
            "channel": place.channel,
            "limit": _PAGE,
            "include_all_metadata": True,
        }
        if place.thread_ts:
            arguments["ts"] = place.thread_ts
        if oldest:
            arguments["oldest"] = oldest
        found: list[Mapping[str, JsonValue]] = []
        for _ in range(_PAGES):
            await self.scheduler.read_permit()
            answer = await self._api.call(method, **arguments)
            found += [m for m in _objects(answer.get("messages")) if self._is_own(m)]
            cursor = _next_cursor(answer)
            if not cursor:
                break
            arguments["cursor"] = cursor
        return found

    async def _laid_out(
        self,
        method: str,
        arguments: Mapping[str, JsonValue],
        part: Part,
        permit: Callable[[], Awaitable[None]],
    ) -> Mapping[str, JsonValue]:
        """Send with blocks, else without the refused ones, else as text; one call each."""
        try:
            return await self._send(method, arguments, part)
        except Refused as refused:
            if refused.code not in LAYOUT_REFUSED:
                raise
            plainer = self.pictures.without(part.blocks, refused)
        await permit()
        if plainer is not None:
            return await self._laid_out(method, arguments, Part(part.text, plainer), permit)
        return await self._send(method, arguments, Part(part.text, ()))

    async def _send(
        self, method: str, arguments: Mapping[str, JsonValue], part: Part
    ) -> Mapping[str, JsonValue]:
        blocks = list[JsonValue](self.pictures.shown(part.blocks))
        content: dict[str, JsonValue] = {"text": part.text, "blocks": blocks}
        return await self._api.call(method, **{**arguments, **content})

    def _is_own(self, message: Mapping[str, JsonValue]) -> bool:
        return not self._bot_user_id or message.get("user") == self._bot_user_id

    @staticmethod
    def _marked(message: Mapping[str, JsonValue], mark: Mark) -> Iterator[tuple[int, MessageTs]]:
        metadata = _object(message.get("metadata"))
        payload = _object(metadata.get("event_payload"))
        is_ours = metadata.get("event_type") == mark.event_type
        part = payload.get("part", 0)
        if is_ours and payload.get(mark.subject_key) == mark.subject and isinstance(part, int):
            yield part, MessageTs(str(message.get("ts", "")))

    @staticmethod
    def _grown(message: Mapping[str, JsonValue], mark: Mark) -> Iterator[tuple[int, MessageTs]]:
        """By the first of its task cards; Slack keeps a mark only of what has ended."""
        if message.get("metadata"):
            return
        for block in _objects(message.get("blocks")):
            for card in (block, *_objects(block.get("tasks"))):
                name, _, part = str(card.get("task_id", "")).rpartition(":")
                if part.isdecimal() and name == mark.name.rpartition(":")[0]:
                    yield int(part), MessageTs(str(message.get("ts", "")))


async def _at_once() -> None:
    """Private messages are not paced."""


def _next_cursor(answer: Mapping[str, JsonValue]) -> str:
    return str(_object(answer.get("response_metadata")).get("next_cursor") or "")


def _object(value: JsonValue | None) -> Mapping[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _objects(value: JsonValue | None) -> Iterable[Mapping[str, JsonValue]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
