"""All that is on record about one session, for its report. Values only."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.domain.audit import AuditEntry
from bot.domain.proposal import Proposal
from bot.domain.session import Session
from bot.domain.turn_events import Evidence


@dataclass(frozen=True, slots=True)
class DossierTurn:
    """One question and what became of it. `answer_ts` is the message that holds the answer."""

    id: str
    asker: str
    question: str
    answer: str
    state: str
    started_at: datetime
    ended_at: datetime | None
    answer_ts: str | None
    evidence: Sequence[Evidence]


@dataclass(frozen=True, slots=True)
class DossierCost:
    """Rounds of one model. `usd_micros` leaves out rounds with an unknown price."""

    provider: str
    model: str
    rounds: int
    rounds_unpriced: int
    tokens: int
    usd_micros: int


@dataclass(frozen=True, slots=True)
class Dossier:
    session: Session
    turns: Sequence[DossierTurn]
    proposals: Sequence[Proposal]
    costs: Sequence[DossierCost]
    audit_log: Sequence[AuditEntry]
