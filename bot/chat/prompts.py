"""The system text of a turn, and what is told with each question."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from adapters.llm.stated import said_by
from bot.chat.jobs import instructions
from bot.domain.channel import DIRECT, GROUP, UNKNOWN
from tools.contract import PROPOSE_TOOL_ID


@dataclass(frozen=True, slots=True)
class PromptFacts:
    """What is always needed, injected rather than fetched by a tool; the same in all of a channel's
    turns, so that providers can cache it with the conversation behind it.
    """

    channel: str
    products: Sequence[str]
    actions: Sequence[str]  # "name: description (products)"
    purpose: str = "investigate"  # the toolset
    tools: Collection[str] = ()  # the ids that are offered; nothing else is named


def system_prompt(facts: PromptFacts) -> str:
    """The system text of a turn: static first, so that providers can cache it."""
    lines = [
        stable_part(facts),
        "Here",
        f"- Channel: {_channel(facts.channel)}.",
        f"- Products of this channel: {', '.join(facts.products) or 'not configured'}.",
    ]
    if PROPOSE_TOOL_ID not in facts.tools:
        return "\n".join(lines)
    if facts.actions:
        lines.append("- Actions people can confirm: " + "; ".join(facts.actions) + ".")
    else:
        lines.append(f"- No actions are declared; {PROPOSE_TOOL_ID} would be refused.")
    return "\n".join(lines)


def stable_part(facts: PromptFacts) -> str:
    """The beginning that is the same in every turn with these tools."""
    return instructions(facts.purpose, facts.tools)


def situation(now: datetime, notes: Sequence[str], asker: str = "") -> str:
    """What is told with a question and belongs to its moment: the time, whose words it is, open
    proposals and what people decided. It stands behind all that was said before, which stays as it was.
    """
    told = [f"Time: {now:%Y-%m-%dT%H:%M:%SZ}.", *([said_by(asker)] if asker else []), *notes]
    return "\n".join(["Now", *(f"- {each}" for each in told)])


def _channel(name: str) -> str:
    nameless = {DIRECT: "a direct message", GROUP: "a group message", UNKNOWN: "not known"}
    return nameless.get(name, f"#{name}")
