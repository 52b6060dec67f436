"""Bringing an answer to people: its placeholder, its end, and what cannot be brought now.

A platform that refuses everything for a while (a revoked token, an outage) costs no answer: the
turn goes on unseen, its end is kept, and `Redelivery` brings it as soon as that is possible. The end
of a failed turn says what became of its proposals.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, assert_never

import structlog

from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.ids import MessageTs, SessionId, TeamId, TurnId, session_at
from bot.domain.proposal import (
    ONE_ORDER,
    REHEARSED,
    Proposal,
    ProposalState,
    is_rehearsal,
    refused_by,
)
from bot.domain.session import Ask
from bot.domain.turn_events import TurnEnd, TurnFinished
from bot.ports.audit_log import AuditLog
from bot.ports.failures import StorageUnavailable, SurfaceFailed, SurfaceGone
from bot.ports.platform import AnswerStream, AnswerSurface, OnPart, no_part
from bot.ports.sessions import HeldBack, SessionStore, Undelivered

log = structlog.get_logger(__name__)

NOT_READ: Final = (
    "Kortex could not read the state of this question's proposals. Check their cards before you "
    "ask again."
)

# The proposals of a session, oldest first. Raises StorageUnavailable.
ProposalsOf = Callable[[SessionId], Awaitable[Sequence[Proposal]]]


async def no_proposals(_session: SessionId) -> Sequence[Proposal]:
    """None, where no actions are declared."""
    return ()


async def changes_of(ask: Ask, proposals_of: ProposalsOf) -> str:
    """One sentence for each proposal of the turn; empty when it made none. Raises nothing of its own.

    Without the database it says that the proposals could not be read.
    """
    try:
        found = await proposals_of(SessionId(session_at(ask.place)))
    except StorageUnavailable as error:
        log.warning("proposals.not_read", turn=ask.turn_id, error=str(error))
        return NOT_READ
    mine = [each for each in found if each.turn_id == TurnId(ask.turn_id)]
    # A long text is cut at its end, so what may have taken effect comes first.
    return " ".join(map(_sentence, sorted(mine, key=_had_no_effect)))


def _had_no_effect(row: Proposal) -> bool:
    over = (ProposalState.REJECTED, ProposalState.EXPIRED, ProposalState.SUPERSEDED)
    return row.state in over and refused_by(row) != ONE_ORDER


def _sentence(row: Proposal) -> str:
    named = f"The proposed {row.action} of {row.product}"
    match row.state:
        case ProposalState.PENDING:
            so_far = f"has {len(row.votes)} of {row.approvals} approvals and " if row.votes else ""
            return f"{named} {so_far}still waits for a decision on its card."
        case ProposalState.CONFIRMED | ProposalState.DISPATCHING:
            return f"{named} was confirmed and is being carried out."
        case ProposalState.SUCCEEDED:
            done = REHEARSED if is_rehearsal(row) else "carried out"
            return f"{named} was confirmed and {done}."
        case ProposalState.FAILED | ProposalState.SUPERSEDED if guard := refused_by(row):
            same = "was not sent, because another proposal sent the same order."
            refused = "was confirmed, then refused; nothing was sent."
            return f"{named} {same if guard == ONE_ORDER else refused}"
        case ProposalState.FAILED:
            return f"{named} was confirmed and failed; its card has the details."
        case ProposalState.UNKNOWN:
            return f"{named} was confirmed and may have taken effect; its result is unknown."
        case ProposalState.REJECTED:
            return f"{named} was rejected; nothing was sent."
        case ProposalState.EXPIRED:
            return f"{named} expired; nothing was sent."
        case ProposalState.SUPERSEDED:
            return f"{named} was replaced by another proposal."
        case _:
            assert_never(row.state)


# An answer to an incident is useless later; people then see that there was one.
GIVE_UP_S: Final = 3_600.0
# How long Kortex tries to inform admins.
TELL_S: Final = 24 * 3_600.0
BATCH: Final = 10
NOT_YET: Final = MessageTs("")

# The admins of that workspace; how many were reached.
TellAdmins = Callable[[TeamId, str], Awaitable[int]]


@dataclass(slots=True, eq=False, repr=False)
class Delivery:
    """One turn's way to people. Raises StorageUnavailable, nothing of the surface's."""

    surface: AnswerSurface
    sessions: SessionStore
    undelivered: Undelivered
    proposals_of: ProposalsOf

    async def open(self, ask: Ask) -> MessageTs | None:
        """The placeholder's message; `NOT_YET` when it cannot be posted now, None: nowhere."""
        try:
            return await self._opened(ask)
        except SurfaceGone:
            return None
        except SurfaceFailed as error:
            log.warning("answer.not_shown", turn=ask.turn_id, error=str(error))
            return NOT_YET

    async def deliver(
        self,
        ask: Ask,
        ts: MessageTs,
        final: TurnFinished,
        stream: AnswerStream,
        on_part: OnPart = no_part,
    ) -> str:
        """Show the final answer, or keep it for later."""
        try:
            if ts == NOT_YET and await self.open(ask) is None:
                return "gone"
            await stream.finish(await self.with_changes(ask, final), on_part)
        except SurfaceGone:
            return "gone"
        except SurfaceFailed as error:
            log.warning("answer.delayed", turn=ask.turn_id, error=str(error))
            await self.undelivered.keep(ask, final)
            return "held back"
        return "shown"

    async def with_changes(self, ask: Ask, final: TurnFinished) -> TurnFinished:
        """The end of a failed turn, with what became of its proposals by now."""
        if final.end is not TurnEnd.FAILED:
            return final
        return replace(final, changes=await changes_of(ask, self.proposals_of))

    async def reopen(self, ask: Ask) -> AnswerStream:
        """Where to show an end that was kept. Raises SurfaceGone, SurfaceFailed too."""
        return self.surface.stream(ask, await self._opened(ask))

    async def _opened(self, ask: Ask) -> MessageTs:
        ts = await self.surface.open_answer(ask)
        if ts != NOT_YET:
            await self.sessions.set_answer(ask.turn_id, ts)
        return ts


@dataclass(slots=True, eq=False, repr=False)
class Redelivery:
    """Delivers kept answers. Any number of replicas may run it; each answer goes to one."""

    delivery: Delivery
    audit: AuditLog
    tell_admins: TellAdmins
    is_open: Callable[[], bool]

    async def run(self) -> int:
        """The number of delivered answers. Raises StorageUnavailable; a later run continues."""
        brought = 0
        for held in await self.delivery.undelivered.overdue(BATCH, GIVE_UP_S):
            await self._give_up(held)
        due = await self.delivery.undelivered.claim(BATCH, GIVE_UP_S) if self.is_open() else ()
        for held in due:
            brought += await self._bring(held)
        return brought

    async def _bring(self, held: HeldBack) -> bool:
        ask = held.ask
        try:
            stream = await self.delivery.reopen(ask)
            try:
                await stream.finish(await self.delivery.with_changes(ask, held.final))
            finally:
                await stream.aclose()
        except SurfaceGone:
            await self.delivery.undelivered.settle(ask.turn_id)
            return False
        except SurfaceFailed as error:
            log.info("answer.retry_failed", turn=ask.turn_id, error=str(error))
            return False
        await self.delivery.undelivered.settle(ask.turn_id)
        return True

    async def _give_up(self, held: HeldBack) -> None:
        ask = held.ask
        about = {"turn": ask.turn_id, "channel": ask.place.channel, "asker": ask.asker.user}
        key = f"{ask.turn_id}:undelivered"
        await self.audit.append(
            AuditEvent(
                AuditKind.ANSWER_UNDELIVERED, "clock", {**about, "end": held.final.end}, key=key
            )
        )
        if held.age_s < GIVE_UP_S + TELL_S and not await self._told(held):
            return
        log.error("answer.undelivered", **about)
        await self.delivery.undelivered.settle(ask.turn_id)

    async def _told(self, held: HeldBack) -> bool:
        ask = held.ask
        words = (
            f"Kortex could not deliver an answer to {ask.asker.user} in {ask.place.channel} for "
            f"an hour and gave up. The audit log has it as {ask.turn_id}."
        )
        return self.is_open() and await self.tell_admins(ask.place.team, words) > 0
