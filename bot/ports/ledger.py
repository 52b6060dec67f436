"""The ledger: what rounds may cost is reserved before them, what they cost is recorded after them."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol

from pydantic import JsonValue

from adapters.llm.messages import Usage
from bot.domain.budget import DAY_S, BudgetLimits, Refusal
from bot.domain.ids import SessionId, TurnId, UserId
from bot.domain.tenancy import HOME


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One round's cost. `cost_usd_micros` None is unknown, never zero.

    `tenant` is the workspace of the question. `counted_usd_micros` is the amount for limits if that
    differs: an assumption for an unknown cost. `channel_id` stays when a channel is renamed.
    """

    session_id: SessionId
    turn_id: TurnId
    round: int
    user: UserId
    channel: str
    provider: str
    model: str
    purpose: str
    usage: Usage
    cost_usd_micros: int | None
    duration_ms: int
    counted_usd_micros: int | None = None
    channel_id: str = ""
    tenant: str = HOME


@dataclass(frozen=True, slots=True)
class Reservation:
    """The worst case of a round that is about to be asked. Known by `id` from then on."""

    id: str
    session_id: SessionId
    turn_id: TurnId
    user: UserId
    channel_id: str
    usd_micros: int
    tokens: int
    tenant: str = HOME


@dataclass(frozen=True, slots=True)
class DatedEntry:
    """One row of the usage export: a round that was paid for, and when it was started."""

    at: datetime
    entry: LedgerEntry


@dataclass(frozen=True, slots=True)
class Today:
    """The budget's day so far. `held` is reserved by rounds that run, or by dead processes.

    `used` counts against limits; `spent` is known to have been spent.
    """

    spent_usd_micros: int
    used_usd_micros: int
    held_usd_micros: int
    at: datetime

    @property
    def elapsed_s(self) -> float:
        """Seconds since midnight UTC by the database's clock."""
        return self.at.timestamp() % DAY_S


@dataclass(frozen=True, slots=True)
class SpentBy:
    """One row of a report. `rounds_unpriced` had no known price."""

    name: str
    usd_micros: int
    rounds: int
    rounds_unpriced: int
    tokens: int

    def as_json(self) -> dict[str, JsonValue]:
        return {
            "name": self.name,
            "usd_micros": self.usd_micros,
            "rounds": self.rounds,
            "rounds_unpriced": self.rounds_unpriced,
            "tokens": self.tokens,
        }


class Ledger(Protocol):
    """Costs of rounds, and reservations of running ones. Atomic over all replicas."""

    async def reserve(self, wanted: Reservation, limits: BudgetLimits) -> Refusal | None:
        """Hold the worst case, or return the limit that refuses it; then nothing new is held.

        The same id again replaces its earlier hold. Spent and held amounts together never pass a
        limit. The hold of a dead process counts until its day or hour ends; for a thread's tokens,
        for an hour.
        """
        ...

    async def release(self, reservation: str) -> None:
        """Hold nothing under that id any more."""
        ...

    async def record(self, entry: LedgerEntry, reservation: str = "") -> None:
        """Idempotent by (turn, round, provider). Takes the place of the reservation, at its time."""
        ...

    async def today(self) -> Today:
        """Since midnight UTC by the database's clock."""
        ...

    def entries(self, since: datetime, until: datetime) -> AsyncIterator[DatedEntry]:
        """Every recorded round of that time, oldest first, however many."""
        ...

    async def report(self, day: date | None, by: str) -> Sequence[SpentBy]:
        """Totals of a day (None: today) by "user", "channel", "provider" or "session"."""
        ...
