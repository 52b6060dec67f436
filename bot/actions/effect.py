"""Whether a successful action helped: its metric against the baseline, before and after.

If it got worse, Kortex proposes to roll back, which people must confirm like any proposal.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog
from pydantic import BaseModel, ValidationError

from bot.actions.catalog import ActionCatalog, ActionRule
from bot.actions.display import ProposalDisplay
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.channel import Channel
from bot.domain.chart import Chart, around
from bot.domain.proposal import Proposal, ProposalState, is_rehearsal
from bot.ports.audit_log import AuditLog
from bot.ports.proposals import Watches, WatchKind
from tools.capabilities import CallContext, Clock
from tools.errors import InvalidArguments, ToolError
from tools.operation import ProposalDraft, ProposalReceipt
from tools.timerange import instant_text

log = structlog.stdlib.get_logger(__name__)

WINDOW: Final = timedelta(minutes=10)
TRY_FOR_S: Final = 300.0  # after the first look, while the metric cannot be read
# Deviation from baseline, after against before: less is noise of the metric itself.
BETTER: Final = 0.5
WORSE: Final = 1.25


@dataclass(frozen=True, slots=True)
class Deviation:
    """The distance of a metric from its baseline: its value with the unit, in words, as a chart."""

    anomalous: bool
    distance: float
    words: str
    figure: str
    chart: Chart | None = None


# A product's metric in a time range, read as a tool call of the proposal's session; None if
# unknown.
Measure = Callable[[Proposal, str, str], Awaitable[Deviation | None]]
Propose = Callable[[Proposal, ProposalDraft], Awaitable[ProposalReceipt]]


async def begin_effect(watches: Watches, catalog: ActionCatalog, row: Proposal) -> None:
    """Look at the action's effect later, if it declares how. A rehearsal has none."""
    if is_rehearsal(row):
        return
    try:
        rule = catalog.find(row.action, row.product).rule
    except InvalidArguments:
        return
    if rule.verify_metric:
        after_s = rule.verify_after_s
        await watches.begin(row.id, WatchKind.EFFECT, after_s, after_s + TRY_FOR_S)


class EffectCheck:
    """Reports once per proposal."""

    def __init__(
        self,
        catalog: ActionCatalog,
        measure: Measure,
        propose: Propose,
        display: ProposalDisplay,
        audit: AuditLog,
        clock: Clock,
    ) -> None:
        self._catalog = catalog
        self._measure = measure
        self._propose = propose
        self._display = display
        self._audit = audit
        self._clock = clock

    async def look(self, row: Proposal, *, is_last: bool) -> bool:
        """Whether that was the end of it. Raises StorageUnavailable."""
        rule = self._rule(row)
        if rule is None or row.state is not ProposalState.SUCCEEDED or row.decided_at is None:
            return True
        start, now = row.decided_at, self._clock.now()
        # The first half of the time is for taking effect.
        since = max(start + (now - start) / 2, now - WINDOW)
        before = await self._measure(row, rule.verify_metric, _range(start - WINDOW, start))
        after = await self._measure(row, rule.verify_metric, _range(since, now))
        if (before is None or after is None) and not is_last:
            return False
        verdict = _verdict(before, after)
        await self._record(row, rule, verdict, before, after)
        words = _words(row, rule, verdict, before, after, now - start)
        if verdict == "worse" and rule.rollback:
            words += await self._rolled_back(row, rule, words)
        chart = around(_chart(before), _chart(after), start, "confirmed")
        await self._display.say(row.place, words, f"{row.id}:effect", [chart] if chart else [])
        return True

    def _rule(self, row: Proposal) -> ActionRule | None:
        try:
            rule = self._catalog.find(row.action, row.product).rule
        except InvalidArguments:
            return None
        return rule if rule.verify_metric else None

    async def _rolled_back(self, row: Proposal, rule: ActionRule, words: str) -> str:
        draft = ProposalDraft(
            rule.rollback,
            row.product,
            rule.rollback_params,
            f"Proposed by the check after {row.id}, without a model: {words}",
            "",
            None,
        )
        try:
            await self._propose(row, draft)
        except ToolError as error:
            log.warning("effect.rollback_not_proposed", proposal=row.id, error=str(error))
            return f" A rollback could not be proposed: {error}"
        return " The card below proposes to roll it back. An approver must confirm it."

    async def _record(
        self,
        row: Proposal,
        rule: ActionRule,
        verdict: str,
        before: Deviation | None,
        after: Deviation | None,
    ) -> None:
        await self._audit.append(
            AuditEvent(
                AuditKind.DISPATCH_EFFECT,
                "clock",
                {
                    "proposal": row.id,
                    "metric": rule.verify_metric,
                    "verdict": verdict,
                    "before": before.words if before else "",
                    "after": after.words if after else "",
                },
                session_id=row.session_id,
                key=f"{row.id}:effect",
            )
        )


def rollback_context(
    row: Proposal, channel: Channel, roles: frozenset[str], clock: Clock
) -> CallContext:
    """The context in which a check reads and proposes: the asker's, in the proposal's session."""
    return CallContext(
        actor=row.asked_by.user,
        team=row.asked_by.team,
        channel=channel.name,
        session_id=row.session_id,
        session_name=channel.session_name,
        turn_id=row.turn_id,
        tool_call_id=f"effect:{row.id}",
        purpose="investigate",
        now=clock.now(),
        products=(row.product,),
        channel_id=row.place.channel,
        roles=roles,
    )


def _chart(found: Deviation | None) -> Chart | None:
    return found.chart if found else None


def _range(start: datetime, end: datetime) -> str:
    return f"{instant_text(start)}/{instant_text(end)}"


def _verdict(before: Deviation | None, after: Deviation | None) -> str:
    if before is None or after is None:
        return "unknown"
    if before.anomalous and not after.anomalous:
        return "helped"
    if after.anomalous and not before.anomalous:
        return "worse"
    if not after.anomalous:
        return "unchanged"
    if after.distance <= before.distance * BETTER:
        return "helped"
    return "worse" if after.distance >= before.distance * WORSE else "unchanged"


_TOLD: Final = {
    "helped": "✓ It helped",
    "worse": "⚠ It got worse",
    "unchanged": "It changed nothing",
    "unknown": "It is unknown whether it helped",
}


def _words(
    row: Proposal,
    rule: ActionRule,
    verdict: str,
    before: Deviation | None,
    after: Deviation | None,
    took: timedelta,
) -> str:
    then = f"{before.figure}, {before.words}" if before else "no data"
    metric = rule.verify_metric.replace("_", " ")
    minutes = max(1, round(took.total_seconds() / 60))
    elapsed = "1 minute" if minutes == 1 else f"{minutes} minutes"
    place = "back to" if verdict == "helped" and after and not after.anomalous else "at"
    if after is None:
        tail = f"Before: {then}. See its verify_metric, {rule.verify_metric}."
        return f"{_TOLD[verdict]}: no data of {metric} of {row.product}, {elapsed} after {row.action}. {tail}"
    return (
        f"{_TOLD[verdict]}: {metric} of {row.product} is {place} {after.figure}, {after.words}, "
        f"{elapsed} after {row.action}. Before: {then}."
    )


_UNITS: Final = {"seconds": " s", "milliseconds": " ms", "percent": " %", "ratio": ""}


class _Compared(BaseModel):
    anomalous: bool
    unit: str | None = None
    window_mean: float | None = None
    window_median: float | None = None
    relative_change: float | None = None
    max_z_score: float | None = None


def compared(content: str, summary: str) -> Deviation | None:
    """From the tool's result; None when it holds no comparison."""
    try:
        found = _Compared.model_validate_json(content)
    except ValidationError:
        return None
    distance = found.relative_change if found.relative_change is not None else found.max_z_score
    if found.window_mean is None or distance is None:
        return None
    return Deviation(found.anomalous, abs(distance), _said(summary), _figure(found))


def _figure(found: _Compared) -> str:
    value = found.window_mean if found.window_median is None else found.window_median
    unit = found.unit or ""
    return f"{value:.3g}{_UNITS.get(unit.lower(), f' {unit}' if unit else '')}"


def _said(summary: str) -> str:
    return summary.partition(" ")[2] or summary
