"""Confirm and Reject, from the button to the durable start of the decision.

Checked at the click, and for a rejection again when its form is sent: the card, the state, the
role, four eyes. The database judges races; only what can be said at once is said here.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog

from bot.actions.judge import Judge, Refusal
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.ids import ProposalId
from bot.domain.proposal import Proposal, ProposalState
from bot.ports.failures import StorageUnavailable, SurfaceFailed, SurfaceGone
from bot.ports.proposals import Decision
from bot.slack.api.users import PersonNames
from bot.slack.ingress.clicks import Click, remember
from bot.slack.ingress.payloads import View
from bot.slack.listeners import replies
from bot.slack.listeners.background_tasks import BackgroundTasks
from bot.slack.listeners.ports import Form, IngressPorts, IngressSettings, Pressed
from bot.slack.listeners.replies import refuse
from bot.slack.views.cards import CONFIRM_ACTION, EDIT_ACTION, RAW_ACTION, REJECT_ACTION
from bot.slack.views.modals import (
    EDIT_CALLBACK,
    MAX_REASON,
    REASON_BLOCK,
    REASON_INPUT,
    REJECT_CALLBACK,
    edit_view,
    field_block,
    raw_view,
    reject_view,
)
from bot.slack.views.modals import View as Modal
from tools.errors import InvalidArguments

_log = structlog.stdlib.get_logger(__name__)
_PROPOSAL_ID = re.compile(r"[A-Za-z0-9:._-]{1,200}", re.ASCII)


_STALE = Refusal("stale_card", replies.STALE_CARD)
_NOT_STORED = Refusal("not_stored", replies.CLICK_NOT_STORED, may_retry=True)
_TOO_SLOW = Refusal("too_slow", replies.CLICK_TOO_SLOW, may_retry=True)
_NOT_EDITABLE = Refusal("not_editable", replies.NOT_EDITABLE)
_NOT_OPENED = Refusal("form_not_opened", replies.FORM_NOT_OPENED, may_retry=True)


class ProposalClicks:
    def __init__(
        self,
        settings: IngressSettings,
        ports: IngressPorts,
        background: BackgroundTasks,
        clock: Callable[[], float],
    ) -> None:
        self._ports = ports
        self._background = background
        self._judge_by = Judge(
            ports.roles,
            ports.channel_now,
            ports.action_roles,
            ports.freezes,
            PersonNames(ports.api, clock).name,
        )
        self._timeout_s = settings.handling_timeout_s

    def buttons(self) -> Mapping[str | re.Pattern[str], Pressed]:
        """What a press of each button of a card does; a refusal is a private reply."""

        async def confirm(click: Click) -> Refusal | None:
            return await self._decide(click, ProposalState.CONFIRMED, "")

        return {
            CONFIRM_ACTION: self._telling(confirm),
            REJECT_ACTION: self._telling(self._open_rejection),
            EDIT_ACTION: self._telling(self._open_edit),
            RAW_ACTION: self._telling(self._open_raw),
        }

    def forms(self) -> Mapping[str, Form]:
        """The forms by callback. A refusal that may be retried is shown in the form."""

        async def reject(click: Click, view: View) -> str:
            reason = view.answer(REASON_BLOCK, REASON_INPUT).strip()[:MAX_REASON]
            return await self._submitted(click, self._decide(click, ProposalState.REJECTED, reason))

        async def edit(click: Click, view: View) -> str:
            blocks = [field_block(number) for number in range(len(view.state.values))]
            answers = [view.answer(block, block) for block in blocks]
            return await self._submitted(click, self._edit(click, answers))

        return {
            REJECT_CALLBACK: Form(REASON_BLOCK, reject),
            EDIT_CALLBACK: Form(field_block(0), edit),
        }

    def _telling(self, work: Callable[[Click], Awaitable[Refusal | None]]) -> Pressed:
        async def pressed(click: Click) -> None:
            self._tell(click, await self._in_time(work(click)))

        return pressed

    async def _submitted(self, click: Click, work: Awaitable[Refusal | None]) -> str:
        refusal = await self._in_time(work)
        if refusal is not None and refusal.may_retry:
            return refusal.text
        self._tell(click, refusal)
        return ""

    async def _in_time(self, work: Awaitable[Refusal | None]) -> Refusal | None:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await work
        except StorageUnavailable:
            return _NOT_STORED
        except TimeoutError:
            return _TOO_SLOW

    async def _decide(self, click: Click, to: ProposalState, reason: str) -> Refusal | None:
        judged = await self._judge(click, to)
        if isinstance(judged, Refusal):
            return judged
        await self._start(judged, click, to, reason)
        return None

    async def _start(
        self, judged: Proposal, click: Click, to: ProposalState, reason: str = "", params: str = ""
    ) -> None:
        user = click.person.user
        key = f"{judged.id}:{to}:{user}:{click.action_ts}"
        decision = Decision(to, user, key, self._ports.redactor.redact(reason), params)
        await self._ports.workflows.start_decision(judged.id, decision)

    async def _open_rejection(self, click: Click) -> Refusal | None:
        judged = await self._judge(click, ProposalState.REJECTED)
        if isinstance(judged, Refusal):
            return judged
        return await self._open(click, reject_view(remember(click)))

    async def _open_raw(self, click: Click) -> Refusal | None:
        """The stored JSON of the card, in any state of the proposal."""
        proposal = await self._find(click)
        if proposal is None:
            return _STALE
        if (outsider := await self._ports.roles.outsider(click.person)) is not None:
            return Refusal("outsider", outsider)
        told = (
            ("Arguments", proposal.params),
            ("Dry run", proposal.preview),
            ("Result", proposal.outcome),
        )
        return await self._open(click, raw_view(told))

    async def _open_edit(self, click: Click) -> Refusal | None:
        judged = await self._judge(click, ProposalState.SUPERSEDED)
        if isinstance(judged, Refusal):
            return judged
        try:
            fields = self._ports.revisions.form(judged)
            view = edit_view(remember(click), judged.action, fields)
        except (InvalidArguments, ValueError):
            return _NOT_EDITABLE
        return await self._open(click, view)

    async def _open(self, click: Click, view: Modal) -> Refusal | None:
        try:
            await self._ports.api.call("views.open", trigger_id=click.trigger_id, view=view)
        except (SurfaceFailed, SurfaceGone) as error:
            _log.warning("slack.form.not_opened", error=type(error).__name__)
            return _NOT_OPENED
        return None

    async def _edit(self, click: Click, answers: Sequence[str]) -> Refusal | None:
        to = ProposalState.SUPERSEDED
        judged = await self._judge(click, to)
        if isinstance(judged, Refusal):
            return judged
        try:
            names = [field.name for field in self._ports.revisions.form(judged)]
            given = dict(zip(names, answers, strict=False))
            params = self._ports.revisions.read(judged, given)
        except InvalidArguments as error:
            return Refusal("invalid_params", error.message, may_retry=True)
        await self._start(judged, click, to, params=params)
        return None

    async def _judge(self, click: Click, to: ProposalState) -> Proposal | Refusal:
        proposal = await self._find(click)
        if proposal is None:
            await self._record(click, None, to, _STALE)
            return _STALE
        refusal = await self._judge_by.refusal(proposal, click.person, to)
        if refusal is None:
            return proposal
        await self._record(click, proposal, to, refusal)
        return refusal

    async def _find(self, click: Click) -> Proposal | None:
        if not _PROPOSAL_ID.fullmatch(click.value):
            return None
        proposal = await self._ports.proposals.get(ProposalId(click.value))
        if proposal is None or not _is_card(proposal, click):
            return None
        if proposal.card_ts is None or proposal.state is not ProposalState.PENDING:
            told = self._ports.card_pressed(proposal.id, click.message_ts)
            self._background.run("card pressed", told)
        return proposal

    async def _record(
        self, click: Click, proposal: Proposal | None, to: ProposalState, refusal: Refusal
    ) -> None:
        event = AuditEvent(
            AuditKind.CLICK_REFUSED,
            click.person.user,
            {
                "proposal": proposal.id if proposal else "",
                "wanted": to.value,
                "why": refusal.code,
                "team": click.person.team,
                "channel": click.place.channel,
            },
            session_id=proposal.session_id if proposal else "",
            key=":".join(
                ("click.refused", click.message_ts, to, click.person.user, click.action_ts)
            ),
        )
        try:
            await self._ports.audit.append(event)
        except StorageUnavailable:
            # A refused click has no effect that would have to wait for its row.
            _log.error("slack.refusal.unaudited", why=refusal.code)

    def _tell(self, click: Click, refusal: Refusal | None) -> None:
        if refusal is not None:
            told = refuse(click, refusal.text, self._ports.api, self._ports.surface)
            self._background.run("refusal", told)


def _is_card(proposal: Proposal, click: Click) -> bool:
    """Whether the message pressed is the proposal's card.

    Slack delivers a press before our post has returned and its message is stored. Only our own
    messages carry our buttons, and only a card carries its proposal's id: then the thread will do.
    """
    if proposal.card_ts is None:
        return proposal.place == click.place
    here, there = click.place, proposal.place
    same = (here.team, here.channel) == (there.team, there.channel)
    return same and proposal.card_ts == click.message_ts
