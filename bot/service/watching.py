"""The clock's look after a dispatch, put together: what is asked, measured and proposed."""

from dataclasses import replace
from typing import Final

import orjson
from pydantic import BaseModel, ValidationError

from adapters.llm.messages import ToolCall
from bot.actions.effect import Deviation, EffectCheck, rollback_context
from bot.actions.propose import Venue
from bot.actions.watch import WatchSweep
from bot.app import Base, Conversation
from bot.chat.stopping import Signal
from bot.domain.charted import charts_of
from bot.domain.proposal import Proposal
from bot.domain.turn_events import Evidence
from tools.capabilities import CallContext, ProposalDraft, ProposalReceipt

COMPARE = "core__compare_to_baseline"


_UNITS: Final = {"seconds": " s", "milliseconds": " ms", "percent": " %", "ratio": ""}


class _Compared(BaseModel):
    """What is read of the tool's result."""

    anomalous: bool
    unit: str | None = None
    window_mean: float | None = None
    window_median: float | None = None
    relative_change: float | None = None
    max_z_score: float | None = None


def watch_sweep(base: Base, conversation: Conversation) -> WatchSweep:
    """Over this process's tools and executors."""
    display = conversation.display

    async def context(row: Proposal) -> CallContext:
        channel = await conversation.channel_now(row.place)
        roles = await conversation.roles_of(row.place, row.asked_by)
        return rollback_context(row, channel, roles.held, base.clock)

    async def measure(row: Proposal, metric: str, time_range: str) -> Deviation | None:
        arguments = {"product": row.product, "metric_name": metric, "time_range": time_range}
        call = ToolCall(f"effect:{row.id}", COMPARE, orjson.dumps(arguments).decode())
        outcome = await conversation.tools.run(
            call, await context(row), lambda _event: None, Signal()
        )
        found = deviation(outcome.content, outcome.summary) if outcome.record.ok else None
        charts = charts_of(Evidence.of(0, outcome), outcome.record.arguments)
        return found and replace(found, chart=charts[0] if charts else None)

    async def propose(row: Proposal, draft: ProposalDraft) -> ProposalReceipt:
        venue = Venue(row.place, await conversation.channel_now(row.place))
        return await conversation.desk.propose_at(draft, await context(row), venue)

    effect = EffectCheck(base.actions, measure, propose, display, base.stores.audit, base.clock)
    return WatchSweep(
        base.stores.watches,
        base.stores.proposals,
        base.actions,
        conversation.executors,
        display,
        base.redactor,
        effect,
        on_state=base.metrics.proposal_became,
    )


def deviation(content: str, summary: str) -> Deviation | None:
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
    """`0.21 s`."""
    value = found.window_mean if found.window_median is None else found.window_median
    unit = found.unit or ""
    return f"{value:.3g}{_UNITS.get(unit.lower(), f' {unit}' if unit else '')}"


def _said(summary: str) -> str:
    """Without the metric's name, which is told beside it."""
    return summary.partition(" ")[2] or summary
