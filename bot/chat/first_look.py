"""Tool calls before the first round: an overview, so that the model does not have to search.

The calls are planned once and recorded, so a resumed turn makes the same ones. They run like a
model's calls, and the conversation shows them as such.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from pydantic import JsonValue

from adapters.llm.first_look.calls import is_named_as_ours, is_of_look
from adapters.llm.messages import CompleteRequest, ToolCall
from bot.ports.durability import Journal

# For each call; a sweep takes at most 5 s. The model sees a later one as unanswered.
PATIENCE_S: Final = 15.0

Look = Callable[[CompleteRequest], Sequence[ToolCall]]


def patience_s(call: ToolCall) -> float:
    """How long a call may take beside its own limits."""
    return PATIENCE_S if is_of_look(call) else math.inf


def of_model(calls: Sequence[ToolCall]) -> Sequence[ToolCall]:
    """A model's calls, renamed if their ids look like ours."""
    return [
        replace(each, id=f"call_{each.id}") if is_named_as_ours(each) else each for each in calls
    ]


async def planned(
    step: str, look: Look, request: CompleteRequest, journal: Journal
) -> tuple[ToolCall, ...]:
    async def plan() -> JsonValue:
        return [[call.id, call.name, call.arguments] for call in look(request)]

    kept = await journal.step(step, plan, with_next=True)
    assert isinstance(kept, list)  # noqa: S101 - written two lines up
    rows = [row for row in kept if isinstance(row, list)]
    return tuple(ToolCall(str(row[0]), str(row[1]), str(row[2])) for row in rows)
