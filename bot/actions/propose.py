"""Turning a model's wish into a stored proposal and a card. Nothing here can carry one out.

Implements `tools.capabilities.Proposals`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import orjson
import structlog
from pydantic import JsonValue

from bot.actions.catalog import Action, ActionCatalog
from bot.actions.display import ProposalDisplay
from bot.actions.remind import begin_reminder
from bot.actions.target import Target, rehearsed
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.change import left_open
from bot.domain.channel import Channel, missing_approvers, not_covered
from bot.domain.ids import Person, Place, SessionId, TeamId, TurnId, UserId
from bot.domain.proposal import (
    LIFETIME,
    Proposal,
    ProposalState,
    blast_rank,
    canonical,
    deciders,
    digest,
    proposal_id,
)
from bot.ports.failures import StorageUnavailable
from bot.ports.platform import PlatformTraits
from bot.ports.proposals import FreezeState, OnState, ProposalStore, Watches, uncounted
from tools.capabilities import CallContext
from tools.errors import CapabilityUnavailable, InvalidArguments
from tools.operation import ProposalDraft, ProposalReceipt
from tools.redactor import MASK_PREFIX

log = structlog.stdlib.get_logger(__name__)

MAX_OPEN: Final = 3  # more cards in one thread are pressed without being read
MAX_RATIONALE: Final = 2_000
# The tool has 5 s in all; a slow card must not take the receipt of a stored proposal with it.
CARD_TIMEOUT_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class ProposalScope:
    """The place of a call's proposal, and the channel that sets its rules."""

    place: Place
    channel: Channel


ProposalScopeOf = Callable[[CallContext], Awaitable[ProposalScope]]


class ProposalIntake:
    def __init__(
        self,
        catalog: ActionCatalog,
        store: ProposalStore,
        display: ProposalDisplay,
        venue_of: ProposalScopeOf,
        target: Target,
        freeze: FreezeState,
        watches: Watches,
        *,
        max_open: int = MAX_OPEN,
        on_state: OnState = uncounted,
    ) -> None:
        self._catalog = catalog
        self._store = store
        self._display = display
        self._venue_of = venue_of
        self._target = target
        self._freeze = freeze
        self._watches = watches
        self._max_open = max_open
        self._on_state = on_state
        # The calls of one round run at once; turns of a session never do.
        self._counting = asyncio.Lock()

    async def propose(self, draft: ProposalDraft, call: CallContext) -> ProposalReceipt:
        """Store the proposal with its audit row and show its card; idempotent per tool call.

        A proposal that no person could decide is only checked and shown. Raises InvalidArguments
        for an undeclared action, one that cannot be shown whole, one too many, or one without
        approvers; CapabilityUnavailable when it could not be stored.
        """
        try:
            venue = await self._venue_of(call)
        except StorageUnavailable as error:
            raise CapabilityUnavailable("the proposal could not be stored; try again") from error
        return await self.propose_at(draft, call, venue)

    async def propose_at(
        self, draft: ProposalDraft, call: CallContext, venue: ProposalScope
    ) -> ProposalReceipt:
        """`propose` where the place and its roles are known."""
        try:
            proposal = self._checked(draft, call, venue, await self._store.now())
            if not self._display.traits.decides:
                return await self._only_shown(proposal, venue.channel)
            stored = await self._kept(proposal) or await self._new(proposal, venue.channel)
            await begin_reminder(self._watches, stored)
            posted = await self._shown(stored)
        except StorageUnavailable as error:
            raise CapabilityUnavailable("the proposal could not be stored; try again") from error
        return ProposalReceipt(stored.id, stored.expires_at, _awaits(stored), posted)

    def _checked(
        self, draft: ProposalDraft, call: CallContext, venue: ProposalScope, now: datetime
    ) -> Proposal:
        channel = venue.channel
        action = self._catalog.find(draft.action, draft.product)
        if not channel.rule.covers(draft.product):
            raise InvalidArguments(not_covered(channel, draft.product))
        params = checked_params(action.schema.decoded(draft.params), self._display.traits)
        self._catalog.check_params(action, orjson.loads(params))
        _check_blast_radius(action, draft)
        rule = action.rule
        content = digest(rule.name, draft.product, params)
        turn = TurnId(call.turn_id)
        return Proposal(
            id=proposal_id(turn, call.tool_call_id, content),
            session_id=SessionId(call.session_id),
            turn_id=turn,
            place=venue.place,
            asked_by=Person(TeamId(call.team), UserId(call.actor)),
            action=rule.name,
            product=draft.product,
            params=params,
            digest=content,
            rationale=draft.rationale[:MAX_RATIONALE],
            model_blast_radius=draft.blast_radius,
            blast_radius=rule.blast_radius,
            reversible=rule.reversible,
            untrusted_read=call.untrusted_read,
            confirm_roles=channel.rule.confirm,
            action_roles=rule.confirm,
            four_eyes=rule.four_eyes,
            state=ProposalState.PENDING,
            created_at=now,
            expires_at=now + LIFETIME,
            approvals=rule.approvals,
            confirm_dialog=rule.confirm_dialog,
            channel_name=channel.name,
        )

    async def _kept(self, proposal: Proposal) -> Proposal | None:
        return await self._store.get(proposal.id)

    async def _new(self, proposal: Proposal, channel: Channel) -> Proposal:
        return await self._stored(await self._read(proposal, channel))

    async def _only_shown(self, proposal: Proposal, channel: Channel) -> ProposalReceipt:
        shown = await self._read(proposal, channel)
        await self._display.show_unstored(shown)
        return ProposalReceipt(
            shown.id, shown.expires_at, _awaits(shown), posted=False, stored=False
        )

    async def _read(self, proposal: Proposal, channel: Channel) -> Proposal:
        # A name that is unknown now may be known at the press, whose rules then apply.
        if channel.is_known and not proposal.confirm_roles:
            raise InvalidArguments(missing_approvers(channel))
        await self._check_freeze(proposal)
        await self._check_room(proposal)
        action = self._catalog.find(proposal.action, proposal.product)
        return await rehearsed(self._target, action, proposal)

    async def _check_freeze(self, proposal: Proposal) -> None:
        stopped = await self._freeze.refusal(proposal.action, proposal.product)
        if stopped is not None:
            raise InvalidArguments(
                f"{stopped}; nothing can be confirmed now. Say in words what you would have proposed."
            )

    async def _stored(self, proposal: Proposal) -> Proposal:
        async with self._counting:
            kept = await self._kept(proposal)
            if kept is not None:
                return kept
            await self._check_room(proposal)
            stored = await self._store.create(proposal, created(proposal))
            if stored.id != proposal.id:
                raise InvalidArguments(_open_already(stored, proposal.place))
            self._on_state(stored.state)
            return stored

    async def _check_room(self, proposal: Proposal) -> None:
        pending = await self._store.of_session(proposal.session_id, ProposalState.PENDING)
        open_now = [p for p in pending if p.expires_at > proposal.created_at]
        if len(open_now) >= self._max_open:
            listed = ", ".join(f"{p.id} ({p.action} {p.product})" for p in open_now)
            raise InvalidArguments(
                f"{len(open_now)} proposals are open here already: {listed}. "
                "Wait until people have decided on them."
            )

    async def _shown(self, proposal: Proposal) -> bool:
        try:
            async with asyncio.timeout(CARD_TIMEOUT_S):
                await self._display.refresh(proposal.id, ())
        except TimeoutError:
            log.warning("proposal.card.delayed", proposal=proposal.id)
        shown = await self._kept(proposal)
        return shown is not None and shown.card_ts is not None


def _open_already(same: Proposal, here: Place) -> str:
    """Where the identical order is that people decide about or that is being carried out."""
    where = "in this thread" if same.place == here else "in another thread of this channel"
    how = (
        f"open until {same.expires_at:%H:%M} UTC; point people to its card"
        if same.state is ProposalState.PENDING
        else "confirmed, and has not ended yet"
    )
    return f"the same is proposed already {where}: {same.id} is {how}. Nothing new was stored."


def _awaits(proposal: Proposal) -> tuple[str, ...]:
    if proposal.confirm_roles and proposal.action_roles:
        return (deciders(proposal),)
    return proposal.confirm_roles


def checked_params(given: Mapping[str, JsonValue], platform: PlatformTraits) -> str:
    """Their canonical text. Raises InvalidArguments for what its card could not show whole."""
    try:
        params = canonical(given)
    except TypeError as error:
        raise InvalidArguments("params hold a value that JSON cannot carry") from error
    if MASK_PREFIX in params:
        raise InvalidArguments(
            "params hold a secret or personal data, which was masked before it came here; "
            "no action takes such a value from a conversation. Leave it out"
        )
    if _shown_length(params) > platform.card_chars:
        raise InvalidArguments(
            "params are too long to show whole on the card, so they could not be confirmed; "
            "propose a smaller change"
        )
    return params


def _shown_length(text: str) -> int:
    """Characters on the card at worst, where some are written as entities or `\\u…` escapes."""
    return sum(_shown_width(char) for char in text)


def _shown_width(char: str) -> int:
    if char in "&<>`@":
        return len(r"\u0000")
    if char.isascii() and char.isprintable():
        return 1
    return len(r"\u0000") if ord(char) <= 0xFFFF else len(r"\U00000000") + 2


def _check_blast_radius(action: Action, draft: ProposalDraft) -> None:
    claimed = blast_rank(draft.blast_radius)
    declared = blast_rank(action.rule.blast_radius)
    if claimed is not None and declared is not None and claimed > declared:
        raise InvalidArguments(
            f"{action.rule.name} may touch at most {action.rule.blast_radius}; the given "
            "blast_radius is wider. Propose something narrower, or suggest it in words."
        )


def created(proposal: Proposal) -> AuditEvent:
    return AuditEvent(
        AuditKind.PROPOSAL_CREATED,
        proposal.asked_by.user,
        {
            "proposal": proposal.id,
            "turn": proposal.turn_id,
            "action": proposal.action,
            "product": proposal.product,
            "digest": proposal.digest,
            "blast_radius": proposal.blast_radius,
            "confirm_roles": list(proposal.confirm_roles),
            "action_roles": list(proposal.action_roles),
            "approvals": proposal.approvals,
            "untrusted_read": proposal.untrusted_read,
            "preview": proposal.preview,
            "objects": proposal.objects,
            "fingerprint": proposal.fingerprint,
            **({"supersedes": proposal.supersedes} if proposal.supersedes else {}),
            **({"left_open": chosen} if (chosen := left_open(proposal)) else {}),
        },
        session_id=proposal.session_id,
        key=f"{proposal.id}:created",
    )
