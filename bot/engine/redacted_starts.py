"""What is stored durably to be worked on is redacted first."""

from dataclasses import replace

from bot.domain.ids import ProposalId
from bot.domain.session import Ask
from bot.ports.durability import Workflows
from bot.ports.proposals import Decision
from bot.privacy.placeholders import Placeholders
from tools.redactor import Redactor


class RedactedStarts:
    """`bot.ports.durability.Workflows` in front of another one."""

    def __init__(self, starts: Workflows, redactor: Redactor, placeholders: Placeholders) -> None:
        self._starts = starts
        self._redactor = redactor
        self._placeholders = placeholders

    async def start_turn(self, ask: Ask) -> None:
        """Durable when it returns."""
        with self._placeholders.within(ask.place.key):
            text = self._redactor.redact(ask.text)
        await self._starts.start_turn(replace(ask, text=text))

    async def start_decision(self, proposal_id: ProposalId, decision: Decision) -> None:
        """Durable when it returns."""
        safe = replace(decision, reason=self._redactor.redact(decision.reason))
        await self._starts.start_decision(proposal_id, safe)
