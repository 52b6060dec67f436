"""Workflows that remember each start; a start can fail on request."""

import asyncio

from bot.domain.ids import ProposalId, TurnId
from bot.domain.session import Ask
from bot.ports.proposals import Decision


class RecordingWorkflows:
    """Like the engine, the same ask is the same turn. `failures` are raised first, one a call."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.turns: dict[TurnId, Ask] = {}
        self.decisions: list[tuple[ProposalId, Decision]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.entered = asyncio.Event()

    async def start_turn(self, ask: Ask) -> None:
        await self._pass()
        self.turns.setdefault(ask.turn_id, ask)

    async def start_decision(self, proposal_id: ProposalId, decision: Decision) -> None:
        await self._pass()
        self.decisions.append((proposal_id, decision))

    async def _pass(self) -> None:
        self.entered.set()
        await self.gate.wait()
        if self.failures:
            raise self.failures.pop(0)
