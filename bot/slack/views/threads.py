"""Messages of a thread, read from Slack in pages within the allowance.

Since 2025-05-29 Slack gives sold apps outside its Marketplace 15 messages a minute
(https://docs.slack.dev/apis/web-api/rate-limits, conversations.history and .replies). Then only the
first page is read, and the result says so.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import structlog
from pydantic import ValidationError, model_validator

from bot.domain.ids import MessageTs, Place
from bot.domain.thread import Said, Speaker, ThreadRead
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.calls import ApiObject, SlackCalls
from bot.slack.api.users import PersonNames
from bot.slack.api.web_api import RateLimited
from bot.slack.delivery.outbox import ANSWER, CARD
from bot.slack.text.links import permalink
from bot.slack.text.mrkdwn import clean
from bot.slack.text.plain import mentioned_users, message_source, plain_text

_log = structlog.stdlib.get_logger(__name__)

PAGE: Final = 200  # Slack's advice
FEW: Final = 15  # of those apps
NAMES: Final = 60  # people looked up for one thread, each once in five minutes
_AT_ONCE: Final = 8
_PATIENCE_S: Final = 20.0  # a Retry-After up to this is waited for, once
SOMEBODY: Final = "somebody"
AN_APP: Final = "an app"
LIMITED: Final = (
    f"Slack gives apps like this one {FEW} messages a minute, so only the first {FEW} were read"
)
CUT: Final = "the thread is longer, only its first {count} messages were read"
REFUSED: Final = "Slack did not give {what} messages ({why}); what I have on record is here"

UNREADABLE: Final = "{count} of the messages could not be read"

_TS = re.compile(r"[0-9]{1,11}\.[0-9]{1,9}", re.ASCII)
_BOOKKEEPING: Final = frozenset({"file_share", "thread_broadcast", "bot_message", "me_message", ""})


class _Read(ApiObject):
    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: object) -> object:
        """Slack sends null for a field that an app left out."""
        if not isinstance(data, Mapping):
            return data
        return {name: value for name, value in data.items() if value is not None}


class _Named(_Read):
    name: str = ""


class _Metadata(_Read):
    event_type: str = ""


class _Message(_Read):
    ts: str
    user: str = ""
    text: str = ""
    subtype: str = ""
    bot_id: str = ""
    username: str = ""
    hidden: bool = False
    bot_profile: _Named = _Named()
    metadata: _Metadata = _Metadata()
    attachments: object = None
    blocks: object = None

    @property
    def source(self) -> str:
        return message_source(self.text, self.attachments, self.blocks)


class _Cursor(_Read):
    next_cursor: str = ""


class _Page(_Read):
    messages: list[object]
    response_metadata: _Cursor = _Cursor()

    def readable(self) -> list[_Message]:
        """One message that is not in Slack's documented shape does not hide the rest."""
        found = []
        for each in self.messages:
            with suppress(ValidationError):
                found.append(_Message.model_validate(each))
        return found


@dataclass(slots=True, eq=False, repr=False)
class SlackThreads:
    """`bot.ports.platform.ThreadReader`. `site` is the workspace's address from auth.test.

    `permit` waits for the allowance; `limited` gets each 429.
    """

    api: SlackCalls
    names: PersonNames
    bot_user: str
    site: str
    permit: Callable[[], Awaitable[None]]
    limited: Callable[[RateLimited], None] = lambda _: None

    async def read(self, place: Place, before: MessageTs, most: int) -> ThreadRead:
        found: list[_Message] = []
        missing = ""
        try:
            missing = await self._pages(place, before, most, found)
        except (SurfaceFailed, SurfaceGone, ValidationError) as error:
            _log.info("slack.thread.not_read", error=str(error) or type(error).__name__)
            missing = REFUSED.format(what="more" if found else "me the", why=_why(error))
        kept = found[:most] if place.thread_ts else found[-most:]
        told = [m for m in kept if _is_said(m) and (not before or _earlier(m.ts, before))]
        names = await self._names_of(told)
        return ThreadRead([self._said(place, m, names) for m in told], missing)

    def link(self, place: Place, ts: MessageTs) -> str:
        return permalink(self.site, place, ts)

    async def name(self, place: Place, user: str) -> str:  # noqa: ARG002 - of one workspace
        return await self._name_of(user)

    async def _name_of(self, user: str) -> str:
        found = await self.names.name(user)
        return SOMEBODY if found == user else found

    async def _pages(self, place: Place, before: str, most: int, found: list[_Message]) -> str:
        method = "conversations.replies" if place.thread_ts else "conversations.history"
        cursor = missing = ""
        unreadable = 0
        while len(found) < most:
            page = _Page.model_validate(await self._page(method, place, before, cursor))
            readable = page.readable()
            unreadable += len(page.messages) - len(readable)
            # A direct message comes newest first, and its newest are wanted.
            if place.thread_ts:
                found += readable
            else:
                found[:0] = readable[::-1]
            cursor = page.response_metadata.next_cursor
            if cursor and len(page.messages) <= FEW:
                missing = LIMITED
            if missing or not cursor or not place.thread_ts:
                break
        else:
            missing = CUT.format(count=most) if cursor and place.thread_ts else ""
        parts = (missing, UNREADABLE.format(count=unreadable) if unreadable else "")
        return "; ".join(filter(None, parts))

    async def _page(
        self, method: str, place: Place, before: str, cursor: str
    ) -> Mapping[str, object]:
        async def call() -> Mapping[str, object]:
            await self.permit()
            return await self.api.call(
                method,
                channel=place.channel,
                ts=place.thread_ts or None,
                limit=PAGE,
                latest=before or None,
                include_all_metadata=True,
                cursor=cursor or None,
            )

        try:
            return await call()
        except RateLimited as error:
            self.limited(error)
            if error.retry_after_s > _PATIENCE_S:
                raise
        return await call()

    async def _names_of(self, messages: Sequence[_Message]) -> Mapping[str, str]:
        users = [m.user for m in messages if m.user and m.user != self.bot_user]
        users += [user for m in messages for user in mentioned_users(m.source)]
        slots = asyncio.Semaphore(_AT_ONCE)

        async def one(user: str) -> str:
            async with slots:
                return await self._name_of(user)

        wanted = list(dict.fromkeys(users))[:NAMES]
        return dict(zip(wanted, await asyncio.gather(*map(one, wanted)), strict=True))

    def _said(self, place: Place, message: _Message, names: Mapping[str, str]) -> Said:
        ts = MessageTs(message.ts)
        is_own = message.user == self.bot_user
        return Said(
            ts=ts,
            at=datetime.fromtimestamp(float(message.ts), UTC),
            speaker=_speaker(message, is_own=is_own),
            user=message.user or message.bot_id,
            name="Kortex" if is_own else _name(message, names),
            text=_plain(message.text if is_own and message.text else message.source, names),
            link=self.link(place, ts),
            to_bot=not is_own and self.bot_user in mentioned_users(message.source),
        )


def _why(error: Exception) -> str:
    return "too many requests" if isinstance(error, RateLimited) else "it refused"


def _is_said(message: _Message) -> bool:
    told = message.subtype in _BOOKKEEPING and not message.hidden
    return told and _TS.fullmatch(message.ts) is not None


def _earlier(ts: str, before: str) -> bool:
    return _TS.fullmatch(before) is None or _parts(ts) < _parts(before)


def _parts(ts: str) -> tuple[int, str]:
    seconds, _, rest = ts.partition(".")
    return int(seconds), rest


def _speaker(message: _Message, *, is_own: bool) -> Speaker:
    if is_own:
        kinds = {ANSWER: Speaker.ANSWER, CARD: Speaker.CARD}
        return kinds.get(message.metadata.event_type, Speaker.NOTE)
    return Speaker.APP if message.bot_id else Speaker.PERSON


def _name(message: _Message, names: Mapping[str, str]) -> str:
    if message.bot_id:
        known = names.get(message.user, SOMEBODY)
        own = message.bot_profile.name or message.username
        return clean(own or (known if known != SOMEBODY else "")) or AN_APP
    return clean(names.get(message.user, SOMEBODY)) or SOMEBODY


def _plain(text: str, names: Mapping[str, str]) -> str:
    return clean(plain_text(text, lambda user: f"@{names.get(user, SOMEBODY)}", "a channel"))
