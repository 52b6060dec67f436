"""What a round is held against: everything spent and held so far, limit by limit, in one statement."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.budget import NO_MODEL, BudgetLimits, Limit, Refusal
from bot.ports.ledger import Reservation
from bot.store.columns import CleanText
from bot.store.dialect import seconds_ago, this_hour, today
from bot.store.ledger_tables import reservations, session_tokens, spending, spent_days

COUNTED = sa.func.coalesce(spending.c.counted_usd_micros, spending.c.cost_usd_micros, 0)
_EVER = datetime.max.replace(tzinfo=UTC)

# No round lasts so long: an older reservation belongs to a process that died with it.
HELD_S = 3600.0
_WANTED = ("id", "tenant", "channel_id", "turn_id", "session_id", "user")


@dataclass(frozen=True, slots=True)
class Amount:
    """`held` by other rounds, which may not come to cost it."""

    spent: int
    held: int = 0


@dataclass(frozen=True, slots=True)
class Used:
    """The usage without the reservation in question.

    `user_questions` are the person's others of the hour.
    """

    day_usd_micros: Amount
    workspace_usd_micros: Amount
    channel_usd_micros: Amount
    user_questions: Amount
    session_tokens: Amount


def since_midnight() -> sa.ColumnElement[bool]:
    """The days that count as today: also one to come, which is today's where a clock was set back."""
    # An end, because PostgreSQL takes what has none for a third of the table, and reads all of it.
    return spent_days.c.day.between(today(), _EVER)


async def used(connection: AsyncConnection, wanted: Reservation) -> Used:
    """Every sum that a limit is set on, read in one statement.

    What a dead process held of money counts until its day ends, for it may have been billed; what
    it held of a thread's tokens lapses, or the thread would never have them again.
    """
    found = await connection.execute(_used(), {name: getattr(wanted, name) for name in _WANTED})
    day, day_held, own, own_held, here, here_held, questions, tokens, tokens_held = map(
        int, found.one()
    )
    return Used(
        Amount(day, day_held),
        Amount(own, own_held),
        Amount(here, here_held),
        Amount(questions),
        Amount(tokens, tokens_held),
    )


@cache
def _used() -> sa.Executable:
    """Of a reservation; made once: it is asked before every round, and takes longer to make than to run."""
    wanted = {name: sa.bindparam(name, type_=CleanText()) for name in _WANTED}
    others = reservations.c.id != wanted["id"]
    in_day, held_in_day = since_midnight(), sa.and_(others, reservations.c.at >= today())
    workspace = spent_days.c.tenant == wanted["tenant"]
    held_workspace = reservations.c.tenant == wanted["tenant"]
    channel = sa.and_(workspace, spent_days.c.channel_id == wanted["channel_id"])
    held_channel = sa.and_(held_workspace, reservations.c.channel_id == wanted["channel_id"])
    held_here = sa.and_(
        # Rounds of a turn follow each other: another hold of this one is a dead process's.
        reservations.c.turn_id != wanted["turn_id"],
        reservations.c.session_id == wanted["session_id"],
        reservations.c.at >= seconds_ago(HELD_S),
    )
    return sa.select(
        _sum(spent_days.c.counted_usd_micros, in_day),
        _sum(reservations.c.usd_micros, held_in_day),
        _sum(spent_days.c.counted_usd_micros, in_day, workspace),
        _sum(reservations.c.usd_micros, held_in_day, held_workspace),
        _sum(spent_days.c.counted_usd_micros, in_day, channel),
        _sum(reservations.c.usd_micros, held_in_day, held_channel),
        _questions(wanted),
        _sum(session_tokens.c.tokens, session_tokens.c.session_id == wanted["session_id"]),
        _sum(reservations.c.tokens, held_here),
    )


def exceeded(used: Used, wanted: Reservation, limits: BudgetLimits) -> Refusal | None:
    """The first limit that the round would pass."""
    checks = (
        (Limit.DAILY, limits.daily_usd_micros, used.day_usd_micros, wanted.usd_micros),
        (
            Limit.WORKSPACE,
            limits.workspace_daily_usd_micros,
            used.workspace_usd_micros,
            wanted.usd_micros,
        ),
        (
            Limit.CHANNEL,
            limits.channel_daily_usd_micros,
            used.channel_usd_micros,
            wanted.usd_micros,
        ),
        (Limit.USER, limits.user_hourly_questions, used.user_questions, 1),
        (Limit.SESSION, limits.session_tokens, used.session_tokens, wanted.tokens),
    )
    return next(
        (
            Refusal(limit, most, so_far.spent, so_far.held, more)
            for limit, most, so_far, more in checks
            if most and more and so_far.spent + so_far.held + more > most
        ),
        None,
    )


def _sum(
    amount: sa.ColumnElement[int], *conditions: sa.ColumnElement[bool]
) -> sa.ScalarSelect[int]:
    return sa.select(sa.func.coalesce(sa.func.sum(amount), 0)).where(*conditions).scalar_subquery()


def _questions(wanted: Mapping[str, sa.BindParameter[str]]) -> sa.ScalarSelect[int]:
    asked = sa.union(
        sa.select(spending.c.turn_id).where(
            spending.c.at >= this_hour(),
            spending.c.user_id == wanted["user"],
            spending.c.tenant == wanted["tenant"],
            spending.c.turn_id != wanted["turn_id"],
            spending.c.provider != NO_MODEL,
        ),
        sa.select(reservations.c.turn_id).where(
            reservations.c.at >= this_hour(),
            reservations.c.user_id == wanted["user"],
            reservations.c.tenant == wanted["tenant"],
            reservations.c.turn_id != wanted["turn_id"],
        ),
    ).subquery()
    return sa.select(sa.func.count()).select_from(asked).scalar_subquery()
