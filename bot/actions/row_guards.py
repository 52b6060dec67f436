"""Guards that judge by the stored row, the catalogue, the freeze and the count of dispatches."""

from dataclasses import replace

import orjson

from bot.actions.catalog import ActionCatalog
from bot.actions.guard import PASSED, Judgement, Subject
from bot.domain.channel import ChannelNow, out_of_place
from bot.domain.proposal import ProposalState, digest, unapproved
from bot.ports.proposals import FreezeState, ProposalStore
from tools.errors import InvalidArguments


class RequireApproval:
    """As many people as are wanted confirmed this row, the asker not where four eyes are wanted."""

    name = "require_approval"

    async def judge(self, subject: Subject) -> Judgement:
        """From the stored row."""
        row, rule = subject.row, subject.action.rule
        if row.state is not ProposalState.CONFIRMED:
            return Judgement("nobody's confirmation is on record")
        # The stricter of what the card said and what is declared now.
        four_eyes = row.four_eyes or rule.four_eyes
        approvals = max(row.approvals, rule.approvals)
        return Judgement(unapproved(replace(row, four_eyes=four_eyes, approvals=approvals)) or "")


class SameDigest:
    """The stored arguments are those that the card showed."""

    name = "digest"

    async def judge(self, subject: Subject) -> Judgement:
        """Computed anew from the stored row."""
        row = subject.row
        now = digest(row.action, row.product, row.params)
        if now == row.digest == subject.confirmed.proposal.digest:
            return PASSED
        return Judgement("the stored arguments are not those that were confirmed")


class ValidParams:
    """The arguments fit the action as it is declared now."""

    name = "params"

    def __init__(self, catalog: ActionCatalog) -> None:
        self._catalog = catalog

    async def judge(self, subject: Subject) -> Judgement:
        """Against today's schema."""
        try:
            self._catalog.check_params(subject.action, orjson.loads(subject.row.params))
        except InvalidArguments as error:
            return Judgement(error.message)
        return PASSED


class InItsChannel:
    """The channel still has the name and the products that the card was shown under."""

    name = "channel"

    def __init__(self, channel_now: ChannelNow) -> None:
        self._channel_now = channel_now

    async def judge(self, subject: Subject) -> Judgement:
        """By the rules of this moment."""
        row = subject.row
        channel = await self._channel_now(row.place)
        reason = out_of_place(channel, row.channel_name, row.product)
        if reason is None and not channel.rule.confirm:
            reason = "nobody may decide in this channel any more"
        return Judgement(reason or "")


class NotFrozen:
    """Neither a freeze window nor the kill switch stands."""

    name = "freeze"

    def __init__(self, freeze: FreezeState) -> None:
        self._freeze = freeze

    async def judge(self, subject: Subject) -> Judgement:
        """As it is at this moment."""
        row = subject.row
        return Judgement(await self._freeze.refusal(row.action, row.product) or "")


class WithinRate:
    """The action's rate limit, counted in the database: one count for all replicas and restarts."""

    name = "rate_limit"

    def __init__(self, store: ProposalStore) -> None:
        self._store = store

    async def judge(self, subject: Subject) -> Judgement:
        """Before the proposal itself counts."""
        return await self._judge(subject, allowed_before=0)

    async def judge_once_counted(self, subject: Subject) -> Judgement:
        """After it counts: of two that passed side by side, neither goes over the limit."""
        return await self._judge(subject, allowed_before=1)

    async def _judge(self, subject: Subject, *, allowed_before: int) -> Judgement:
        limit = subject.action.rate_limit
        if limit is None:
            return PASSED
        row = subject.row
        count = await self._store.dispatches_since(row.action, row.product, limit.window_s)
        if count < limit.count + allowed_before:
            return Judgement(facts={"so_far": count - allowed_before, "limit": limit.count})
        return Judgement(
            f"rate limit {subject.action.rule.rate_limit}: {row.action} for {row.product} has run "
            "that often already; wait, or do it by hand"
        )
