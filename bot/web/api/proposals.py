"""Proposals over HTTP: shown whole, and decided by an authenticated person under the same rules as a press.

Who decides was judged when they asked to; who wins is the database's to say. The decision is on record,
and carried out whether anybody waits for it, before the answer is given.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import orjson
import structlog
from pydantic import BaseModel, JsonValue

from bot.actions.judge import Judge, Refusal
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.callers import Caller, CallerKind
from bot.domain.change import named, values
from bot.domain.ids import Place, ProposalId, UserId
from bot.domain.proposal import Proposal, ProposalState, status, too_late
from bot.ports.audit_log import AuditLog
from bot.ports.durability import Workflows
from bot.ports.failures import StorageUnavailable
from bot.ports.overview import Overview
from bot.ports.proposals import Decision, ProposalStore
from bot.web.api import models
from bot.web.api.caller_permissions import CallerPermissions
from bot.web.api.callers import Denied
from bot.web.api.naming import Naming, called
from bot.web.api.operations import Call, Operation
from tools.redactor import Redactor

_log = structlog.stdlib.get_logger(__name__)

PROPOSAL: Final = r"^[A-Za-z0-9:._-]{1,200}$"
JUDGE_S: Final = 5.0  # the look-ups of a judgement, all together
VERDICT_S: Final = 5.0  # a decision takes milliseconds; it is on record anyway
LOOK_S: Final = 0.05
_MOST: Final = 200
_CONFLICTS: Final = frozenset({"already_decided", "frozen", "channel"})
WON: Final = "Your decision counted."
COUNTED: Final = "Your confirmation counts; more people must confirm it too."
PENDING: Final = "Your decision is on record and is being carried out; read the proposal again."
SLOW: Final = "I could not check your permission in time; nothing changed. Try again."


@dataclass(frozen=True, slots=True)
class Deciding:
    proposals: ProposalStore
    overview: Overview
    permissions: CallerPermissions
    judge: Judge
    workflows: Workflows
    audit: AuditLog
    redactor: Redactor
    name_of: Callable[[UserId], Awaitable[str]]
    naming: Naming
    warning: Callable[[Proposal], Awaitable[str]]  # takes seconds at most

    async def all(self, call: Call) -> BaseModel:
        rows = await self.overview.open_proposals(_MOST)
        seen = await self.permissions.visible(call.caller, rows)
        return models.Proposals(proposals=await self._told(seen))

    async def one(self, call: Call) -> BaseModel:
        (told,) = await self._told([await self._row(call)])
        return told

    async def confirm(self, call: Call) -> BaseModel:
        return await self._decide(call, ProposalState.CONFIRMED)

    async def reject(self, call: Call) -> BaseModel:
        return await self._decide(call, ProposalState.REJECTED)

    async def _row(self, call: Call) -> Proposal:
        row = await self.proposals.get(ProposalId(call.path("proposal")))
        if row is None or not await self.permissions.visible(call.caller, [row]):
            raise Denied(404, "not_found", "There is no such proposal, or you may not see it.")
        return row

    async def _decide(self, call: Call, to: ProposalState) -> BaseModel:
        wanted, caller, row = call.given, call.caller, await self._row(call)
        assert isinstance(wanted, models.NewDecision)  # noqa: S101 - the operation's body
        refusal = await self._refusal(caller, row, to)
        if refusal is not None:
            await self._record(caller, row, to, refusal)
            if refusal.code == "already_decided":
                return await self._ended(row, caller.person.user, to)
            code = 409 if refusal.code in _CONFLICTS else 403
            raise Denied(503 if refusal.may_retry else code, refusal.code, refusal.text)
        user = caller.person.user
        # A second request is a second wish of the same person: it loses to the first, or adds nothing.
        key = f"{row.id}:{to}:{user}:{secrets.token_hex(8)}"
        reason = self.redactor.redact(wanted.reason.strip())
        await self.workflows.start_decision(row.id, Decision(to, user, key, reason))
        return await self._verdict(row.id, user, to)

    async def _refusal(self, caller: Caller, row: Proposal, to: ProposalState) -> Refusal | None:
        if caller.kind is not CallerKind.PERSON:
            return Refusal("service", "Services can't decide: use a person's token.")
        try:
            async with asyncio.timeout(JUDGE_S):
                return await self.judge.refusal(row, caller.person, to)
        except TimeoutError:
            return Refusal("too_slow", SLOW, may_retry=True)

    async def _verdict(
        self, proposal: ProposalId, user: UserId, to: ProposalState
    ) -> models.Decided:
        row: Proposal | None = None
        try:
            async with asyncio.timeout(VERDICT_S):
                while True:
                    row = await self.proposals.get(proposal)
                    if row is not None and row.state is not ProposalState.PENDING:
                        break
                    voted = row is not None and any(vote.by == user for vote in row.votes)
                    if row is not None and voted and to is ProposalState.CONFIRMED:
                        return await self._decided("counted", COUNTED, row)
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            row = row or await self.proposals.get(proposal)
            if row is None:
                raise StorageUnavailable("the proposal cannot be read") from None
            return await self._decided("pending", PENDING, row)
        return await self._ended(row, user, to)

    async def _ended(self, row: Proposal, user: UserId, to: ProposalState) -> models.Decided:
        was_rejected = row.state is ProposalState.REJECTED
        # Replaced by an edited one: its editor decided, and confirmed nothing.
        was_edited = row.state is ProposalState.SUPERSEDED and not row.outcome
        as_wished = not was_edited and was_rejected == (to is ProposalState.REJECTED)
        if row.decided_by == user and as_wished:
            return await self._decided("won", WON, row)
        by = await self.name_of(row.decided_by) if row.decided_by else "someone"
        return await self._decided("lost", too_late(row, by), row)

    async def _record(
        self, caller: Caller, row: Proposal, to: ProposalState, refusal: Refusal
    ) -> None:
        body: dict[str, JsonValue] = {
            "proposal": row.id,
            "wanted": to.value,
            "why": refusal.code,
            "team": caller.person.team,
            "channel": row.place.channel,
            "over": "http",
        }
        event = AuditEvent(AuditKind.CLICK_REFUSED, caller.person.user, body, row.session_id)
        try:
            await self.audit.append(event)
        except StorageUnavailable:
            # A refused decision has no effect that would have to wait for its row.
            _log.error("api.refusal.unaudited", why=refusal.code)

    async def _decided(
        self, result: Literal["won", "counted", "lost", "pending"], message: str, row: Proposal
    ) -> models.Decided:
        (told,) = await self._told([row])
        return models.Decided(result=result, message=message, proposal=told)

    async def _told(self, rows: Sequence[Proposal]) -> list[models.Proposal]:
        kept = await self.naming.channels(row.place for row in rows if not row.channel_name)
        users = [str(user) for row in rows for user in (row.asked_by.user, row.decided_by) if user]
        people = await self.naming.people(users)
        warnings = await asyncio.gather(*(self.warning(row) for row in rows))
        return [
            self._named(row, kept, people).model_copy(update={"warning": warning})
            for row, warning in zip(rows, warnings, strict=True)
        ]

    def _named(
        self, row: Proposal, kept: Mapping[Place, str], people: Mapping[str, str]
    ) -> models.Proposal:
        decided_by, asked_by = row.decided_by or "", row.asked_by.user
        names = {
            "channel": called(row.channel_name, row.place) if row.channel_name else kept[row.place],
            "thread_url": self.naming.link(row.place, row.card_ts or row.place.thread_ts),
            "asked_by_name": people.get(asked_by, asked_by),
            "decided_by_name": people.get(decided_by, decided_by),
        }
        return proposal_model(row).model_copy(update=names)

    def operations(self) -> Sequence[Operation]:
        """Under `/api/v1/proposals`."""
        at, one = "/api/v1/proposals", {"proposal": PROPOSAL}
        here = f"{at}/{{proposal}}"
        decided, body = models.Decided, models.NewDecision
        return (
            Operation("GET", at, "listProposals", "Open proposals", models.Proposals, self.all),
            Operation("GET", here, "getProposal", "One proposal, whole", models.Proposal, self.one, path_patterns=one),
            Operation("POST", f"{here}/confirm", "confirm", "Confirm it, as a person with the role", decided, self.confirm, body=body, path_patterns=one),
            Operation("POST", f"{here}/reject", "reject", "Reject it, as a person with the role", decided, self.reject, body=body, path_patterns=one),
        )  # fmt: skip


def proposal_model(row: Proposal) -> models.Proposal:
    """What a card shows, and what became of it."""
    return models.Proposal(
        id=row.id,
        session_id=row.session_id,
        state=row.state.value,
        status=status(row),
        effect=named(row),
        arguments=_listed(row.params),
        preview=_listed(row.preview) if row.preview else None,
        action=row.action,
        product=row.product,
        params=_json(row.params),
        rationale=row.rationale,
        blast_radius=row.blast_radius,
        model_blast_radius=row.model_blast_radius,
        reversible=row.reversible,
        untrusted_read=row.untrusted_read,
        dry_run=_json(row.preview),
        touches=list(row.object_names),
        asked_by=row.asked_by.user,
        may_confirm=list(row.confirm_roles),
        must_also_hold=list(row.action_roles),
        four_eyes=row.four_eyes,
        approvals=row.approvals,
        confirmed_by=[vote.by for vote in row.votes],
        decided_by=row.decided_by,
        decided_at=row.decided_at,
        reason=row.reason,
        outcome=_json(row.outcome),
        as_stored=models.AsStored(params=row.params, dry_run=row.preview, outcome=row.outcome),
        created_at=row.created_at,
        expires_at=row.expires_at,
    )


def _listed(text: str) -> list[tuple[str, str]] | None:
    found = values(text)
    return None if found is None else list(found)


def _json(text: str) -> JsonValue:
    if not text:
        return None
    try:
        value: JsonValue = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return value
