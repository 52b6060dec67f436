"""Trim the history to the model's window, and show the notices about it."""

from collections.abc import Sequence

from adapters.llm.messages import CompleteRequest
from bot.chat.history import PURPOSE, SUMMARY_ROUND, Recalled, recall
from bot.chat.round_record import QuietReplay, RoundRecord
from bot.chat.turn_budget import TurnBudget
from bot.domain.turn_events import Notice, TurnEvent
from bot.ports.durability import StopSignal


async def remembered(
    request: CompleteRequest,
    before: Sequence[str],
    budget: TurnBudget,
    stop: StopSignal,
    journal: QuietReplay,
    history_tokens: int,
) -> Recalled:
    """The trimmed request. `before` and the notices of trimming go to people."""
    for notice in before:
        journal.feed(Notice(notice))

    def only_notices(event: TurnEvent) -> None:
        if isinstance(event, Notice):
            journal.feed(event)

    async def summarise(asking: CompleteRequest) -> RoundRecord:
        return await budget.round(
            asking, SUMMARY_ROUND, only_notices, "", stop, full=True, purpose=PURPOSE
        )

    window_tokens = budget.window_tokens()
    recalled = await recall(request, window_tokens, journal, summarise, history_tokens)
    for notice in recalled.notices:
        journal.feed(Notice(notice))
    return recalled
