"""What an engine is started with, and what it carries through."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from bot.domain.ids import ProposalId
from bot.ports.durability import Journal
from bot.ports.proposals import Decision

# Change only when the sequence of steps changes incompatibly: it decides who may resume a turn.
WORKFLOW_VERSION = "kortex-3"
# Work begun under these is carried on as well, as it was begun. They know nothing of ours.
EARLIER_VERSIONS = ("kortex-1", "kortex-2")
LEASE_S = 6.0

DecisionBody = Callable[[ProposalId, Decision, Journal], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """`database_url` as DBOS wants it (a synchronous driver); `sqlite_path` None on PostgreSQL."""

    database_url: str
    sqlite_path: Path | None
    lease_s: float = LEASE_S
    max_live_turns: int = 0  # 0: the database's own
    version: str = WORKFLOW_VERSION
