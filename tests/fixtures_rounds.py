"""Rounds as the loop gets them."""

from adapters.llm.messages import StopReason, ToolCall, Usage
from bot.chat.models import Models
from bot.chat.round_budget import RoundBudget
from bot.chat.round_record import RoundRecord
from bot.domain.budget import BudgetLimits
from tests.fakes.stores import Memory, MemoryLedger
from tests.fixtures_stores import HELD


def said(number: int, text: str, *wanted: ToolCall, **changes: object) -> RoundRecord:
    """A round that went well, unless `changes` say otherwise."""
    fields: dict[str, object] = {
        "number": number,
        "provider": "scripted",
        "model": "m",
        "text": text,
        "tool_calls": wanted,
        "stop_reason": StopReason.TOOL_USE if wanted else StopReason.END_TURN,
        "usage": Usage(10, 0, 0, 1),
        "cost_usd_micros": 7,
    }
    return RoundRecord(**{**fields, **changes})  # type: ignore[arg-type]


def unlimited() -> RoundBudget:
    """One round's budget that refuses nothing."""
    return RoundBudget(MemoryLedger(Memory()), BudgetLimits(), Models(), HELD, full=False)
