"""The rows of ours by which an engine knows what there is to do, and who does it."""

from dataclasses import dataclass
from typing import Self

from bot.engine.config import EARLIER_VERSIONS
from bot.store.accepted import Accepted
from bot.store.database import Database
from bot.store.earlier_work import EarlierWork
from bot.store.replicas import Replicas
from bot.store.stranded import StrandedTurns
from bot.store.tickets import Tickets
from bot.store.turn_steps import TurnSteps


@dataclass(frozen=True, slots=True)
class EngineRows:
    """Of one database."""

    accepted: Accepted
    tickets: Tickets
    steps: TurnSteps
    replicas: Replicas
    stranded: StrandedTurns
    earlier: EarlierWork

    @classmethod
    def of(cls, database: Database, version: str) -> Self:
        """For processes that know that version of the steps."""
        return cls(
            Accepted(database),
            Tickets(database),
            TurnSteps(database),
            Replicas(database, version),
            StrandedTurns(database),
            EarlierWork(database, version, EARLIER_VERSIONS),
        )
