"""The messages of one answer in Slack: which exist, what they show, and how to bring them up to date.

Nothing here is paced: callers hold the permission for the one call that each method makes.
"""

from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from bot.domain.ids import MessageTs, Place, TurnId
from bot.ports.failures import MessageGone, SurfaceFailed, SurfaceGone
from bot.slack.api.web_api import Refused, Unreachable
from bot.slack.delivery.outbox import LAYOUT_REFUSED, Mark, Outbox, answer_mark
from bot.slack.delivery.pacing import Urgency
from bot.slack.delivery.streams import Streams
from bot.slack.text.blocks import Part

_log = structlog.stdlib.get_logger(__name__)

# https://docs.slack.dev/reference/methods/chat.update: it is there but may not be edited any more,
# or not with so long a text, which chat.postMessage takes.
_UNEDITABLE = LAYOUT_REFUSED | {
    "cant_update_message",
    "edit_window_closed",
    "msg_too_long",
    "streaming_state_conflict",
}
_GROWS = "streaming_state_conflict"
_EMPTIED = Part("(continued above)", ())
_REPLACED = Part("(answered below)", ())
# Marks a part that a person deleted before this process learned of it.
_DELETED = MessageTs("0000000000.000000")


@dataclass(slots=True)
class AnswerMessages:
    """One answer. `complete` says whether `posted` is known to be all there is in Slack.

    `unmarked` are those that grew, or still do, and do not say yet what they are for. `replaced`
    are those whose place another took: they are deleted once it stands. `deleted` are parts that a
    person deleted: they stay away, because at the end they would be out of order. `seen`: how many
    parts stood there when the end began to be posted, None before. `is_opened`: its
    placeholder was posted or given up. Once it `is_left` to another process, no second call of an
    edit follows the first.
    """

    outbox: Outbox
    place: Place
    turn: TurnId
    oldest: str
    posted: list[MessageTs] = field(default_factory=list)
    shown: dict[int, Part] = field(default_factory=dict)
    complete: bool = True
    unmarked: set[int] = field(default_factory=set)
    replaced: list[MessageTs] = field(default_factory=list)
    deleted: set[int] = field(default_factory=set)
    seen: int | None = None
    is_opened: bool = False
    streams: Streams | None = None
    is_left: bool = False

    def stale(self, parts: tuple[Part, ...]) -> int | None:
        """The first part that Slack does not show yet."""
        shown = enumerate(parts)
        return next((i for i, p in shown if self.shown.get(i) != p and i not in self.deleted), None)

    async def discover(self) -> None:
        """Learn which messages exist. An attempt before this one may have posted some."""
        found = await self.outbox.find_answer(self.place, answer_mark(self.turn), self.oldest)
        self.unmarked |= {index for index in found.grown if index not in found.marked}
        known = found.grown | found.marked
        if self.posted and known.get(0, self.posted[0]) != self.posted[0]:
            self.posted[0] = known[0]  # an earlier attempt replaced it, without a report
        self.replaced += [ts for ts in found.replaced if ts not in self.replaced]
        for index in range(max(known, default=-1) + 1):
            if index < len(self.posted):
                continue
            if index not in known:  # parts are posted in order, and a later one is there
                self.deleted.add(index)
                self.posted.append(_DELETED)
                continue
            if known[index] in self.replaced:
                break
            if self.posted and known[index] < self.posted[-1]:
                # The part before it was posted again, and the attempt ended before its successors.
                self.replaced += [ts for at, ts in sorted(known.items()) if at >= index]
                break
            self.posted.append(known[index])
        self.complete = True

    def replace(self) -> None:
        """Post its one message again, and delete the old one afterwards."""
        self.replaced += self.posted
        self.posted.clear()
        self.shown.clear()

    async def show(self, index: int, part: Part, urgency: Urgency | None = Urgency.FINAL) -> None:
        """Edit the message of that part, or post it; parts are posted in order.

        `urgency` is for a post; None where the caller holds its permission.
        """
        if index >= len(self.posted) and not self.complete:
            await self.discover()
        if index in self.deleted:
            return
        if index >= len(self.posted):
            await self._post(part, urgency)
        elif not await self._is_edited(index, part):
            return
        self.shown[index] = part

    async def lose(self, index: int, gone: MessageGone) -> None:
        """A person deleted that part. The last one is posted again, where the text goes on.

        Raises `gone` where nothing is left of what people saw. The other parts are edited again,
        since that tells whether they are there.
        """
        if not self.complete:
            await self.discover()
        self.shown.clear()
        self.unmarked.discard(index)
        seen = self.posted[: self.seen]
        if not set(range(len(seen))) - self.deleted - {index}:
            for ts in self.posted[self.seen :] if self.seen is not None else ():
                await self._remove(ts, _EMPTIED)
            raise gone
        _log.info("slack.answer.part_deleted", turn=self.turn, part=index)
        if index < len(seen) - 1:
            self.deleted.add(index)
            return
        # What follows was posted by this end: it is posted again after the part, in order.
        self.replaced += self.posted[index + 1 :]
        del self.posted[index:]

    async def trim(self, count: int) -> None:
        while self.replaced:
            await self._remove(self.replaced[0], _REPLACED)
            self.replaced.pop(0)
        while len(self.posted) > count:
            index = len(self.posted) - 1
            if index not in self.deleted:
                await self._remove(self.posted[index], _EMPTIED)
            self.posted.pop()
            self.shown.pop(index, None)
            self.deleted.discard(index)

    async def _remove(self, ts: MessageTs, instead: Part) -> None:
        channel = self.place.channel
        try:
            await self.outbox.delete(channel, ts)
        except SurfaceFailed as error:
            _log.info("slack.message.not_removed", error=str(error))
            await self.outbox.scheduler.edit_permit()
            with suppress(SurfaceGone):
                await self.outbox.edit(channel, ts, instead)

    async def _post(self, part: Part, urgency: Urgency | None) -> None:
        mark = answer_mark(self.turn, len(self.posted))
        try:
            self.posted.append(await self.outbox.post(self.place, part, mark, urgency))
        except Unreachable:
            self.complete = False  # it may be there all the same
            raise

    async def _is_edited(self, index: int, part: Part) -> bool:
        """Whether the message of that part shows it; else a person has deleted the message."""
        try:
            await self._edit_ended(index, part)
        except MessageGone as gone:
            await self.lose(index, gone)
            return False
        except Refused as refused:
            if refused.code not in _UNEDITABLE:
                raise
            self._check_ours()
            await self._post_anew(index, part)
        self.unmarked.discard(index)
        return True

    async def _post_anew(self, index: int, part: Part) -> None:
        """Post a part that cannot be edited at the end, and have those after it follow it there.

        The thread is read from top to bottom: the later parts are posted after this one, and all
        that they take the place of is deleted in `trim`.
        """
        posted = await self.outbox.post(self.place, part, answer_mark(self.turn, index))
        outdated, *later = self.posted[index:]
        self.posted[index:] = [posted]
        for at, ts in enumerate((outdated, *later), index):
            self.shown.pop(at, None)
            self.unmarked.discard(at)
            if at > index and at not in self.deleted:
                self.replaced.append(ts)
            self.deleted.discard(at)
        # Its Stop button belongs to nothing any more; best effort.
        with suppress(SurfaceGone, SurfaceFailed):
            await self.outbox.delete(self.place.channel, outdated)

    async def _edit_ended(self, index: int, part: Part) -> None:
        """Edit it; one that Slack still lets grow ends first."""
        channel, ts = self.place.channel, self.posted[index]
        mark = answer_mark(self.turn, index)
        unmarked = mark if index in self.unmarked else None
        if unmarked:
            await self._end_growth(ts, mark)
            self._check_ours()
        try:
            await self.outbox.edit(channel, ts, part, unmarked)
        except Refused as refused:
            if refused.code != _GROWS or unmarked:
                raise
            await self._end_growth(ts, mark)
            await self.outbox.scheduler.edit_permit()
            self._check_ours()
            await self.outbox.edit(channel, ts, part, mark)

    def _check_ours(self) -> None:
        if self.is_left:
            raise SurfaceGone("the answer continues in another process")

    async def _end_growth(self, ts: MessageTs, mark: Mark) -> None:
        if self.streams is None:
            return
        try:
            await self.streams.end(self.place.channel, ts, mark)
        except Refused as refused:
            _log.info("slack.stream.already_ended", error=str(refused))
