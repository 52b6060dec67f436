"""All data of one conversation or one person, for an export and for a deletion.

Spending stays, without the name; so do the rows of the audit log, whose content is erased
(`bot.store.audit_by_hand`). The engine's records are in `bot.engine.records`.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from pydantic import JsonValue
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.proposal import OPEN
from bot.domain.session import TurnState
from bot.domain.tenancy import HOME
from bot.store.access_tables import caller_tokens, callers, installations
from bot.store.alert_tables import alert_threads, alerts
from bot.store.chat_tables import chat_events, chat_messages, chat_sessions
from bot.store.database import Database
from bot.store.incident_rows import SESSIONS
from bot.store.incident_words_sqlite import merge_words
from bot.store.ledger_tables import reservations, session_tokens, spending
from bot.store.person import PersonRows
from bot.store.proposal_rows import proposal_of, votes_text
from bot.store.tables import (
    audit,
    evidence,
    feedback,
    incidents,
    messages,
    proposals,
    sessions,
    switches,
    tickets,
    turn_steps,
    turns,
    undelivered,
    watches,
)
from bot.store.tenant_filter import of_team

_TURNS_AT_ONCE: Final = 200
# Held by their turn's id; they go before it.
_OF_A_TURN: Final = (messages, evidence, feedback, undelivered, turn_steps)
# Credentials are never exported.
_SECRET: Final = frozenset({caller_tokens.c.digest.name})

Where = tuple[sa.Table, sa.ColumnElement[bool]]


class StillOpen(Exception):
    """A turn runs or a proposal is open, and would write deleted data again.

    Nothing was changed.
    """


@dataclass(frozen=True, slots=True)
class Subject:
    """A session by id, or a person as `bot.store.person` writes them; the other one is empty."""

    session: str = ""
    person: str = ""

    def __post_init__(self) -> None:
        if bool(self.session) == bool(self.person):
            raise ValueError("a subject is either a session or a person")

    @property
    def kind(self) -> str:
        return "session" if self.session else "person"


class SubjectRecords:
    """Of one subject in one database. Every method raises StorageUnavailable."""

    def __init__(self, database: Database, subject: Subject) -> None:
        self._database = database
        self._subject = subject
        self._person = person = PersonRows(subject.person)
        session = subject.session
        self._turn = turns.c.session_id == session if session else person.turns
        self._turns = sa.select(turns.c.id).where(self._turn)
        self._proposal = proposals.c.session_id == session if session else person.asked

    @property
    def audit_rows(self) -> sa.ColumnElement[bool]:
        """Which rows of the audit log are of it, while its turns are there."""
        session = self._subject.session
        return audit.c.session_id == session if session else self._person.audit_rows(named=True)

    async def check_workspace(self) -> None:
        """Raises UnknownWorkspace."""
        await self._person.check_workspace(self._database)

    async def names(self) -> Collection[str]:
        wanted = (self._turns, sa.select(proposals.c.id).where(self._proposal))

        return {name for each in wanted for name in await self._database.scalars(each)}

    async def user(self) -> tuple[str, Collection[str]]:
        """The person's id, and names that separate the engine's records of others with the same id."""
        person = self._person
        if self._subject.session:
            return "", ()
        others = (
            sa.select(installations.c.team).where(installations.c.team != person.tenant),
            sa.select(proposals.c.id).where(~of_team(proposals.c.team, person.tenant)),
            person.others_turns(),
        )

        names = {name for each in others for name in await self._database.scalars(each)}
        return person.user, names

    async def check_closed(self) -> None:
        """Raises StillOpen."""
        still = (state.value for state in OPEN)
        under_way = (
            sa.select(turns.c.id).where(self._turn, turns.c.state == TurnState.RUNNING.value),
            sa.select(tickets.c.id).where(tickets.c.id.in_(self._turns)),
            sa.select(proposals.c.id).where(self._proposal, proposals.c.state.in_(still)),
        )

        found = [await self._database.scalar(each.limit(1)) for each in under_way]
        if still_open := [each for each in found if each]:
            raise StillOpen(
                f"{still_open[0]} is not over yet. Stop or decide it, or wait until it ends"
            )

    async def rows(self) -> AsyncIterator[dict[str, JsonValue]]:
        """Every row, with its table, as JSON; without the audit log's."""
        every = [*self._own(), (turns, self._turn), *self._kept()]
        every += [(table, table.c.turn_id.in_(self._turns)) for table in _OF_A_TURN]
        for table, where in every:
            found = sa.select(table).where(where).order_by(*table.primary_key)

            async def work(
                connection: AsyncConnection, found: sa.Select[Any] = found
            ) -> Sequence[sa.Row[Any]]:
                rows: Sequence[sa.Row[Any]] = (await connection.execute(found)).all()
                return rows

            for row in await self._database.fetch(work):
                values = {str(k): _plain(v) for k, v in row._asdict().items() if k not in _SECRET}
                yield {"table": table.name, **values}

    async def delete(self) -> int:
        """Delete all but the audit log; the number of rows. After a crash, a repeat continues."""
        deleted = 0
        while some := await self._database.transact(self._some_turns):
            deleted += some
        deleted += await self._database.transact(self._rest)
        await merge_words(self._database)
        return deleted

    async def _some_turns(self, connection: AsyncConnection) -> int:
        chosen = await connection.execute(
            sa.select(turns.c.id, turns.c.session_id).where(self._turn).limit(_TURNS_AT_ONCE)
        )
        some = chosen.all()
        if not some:
            return 0
        ids, theirs = [row.id for row in some], {row.session_id for row in some}
        if self._subject.person:  # its turn shows the person
            unnamed = spending.update().where(spending.c.turn_id.in_(ids))
            await connection.execute(unnamed.values(user_id=""))
        deleted = await _deleted(connection, [(incidents, _incidents_of(theirs))])
        deleted += await _deleted(connection, [(t, t.c.turn_id.in_(ids)) for t in _OF_A_TURN])
        deleted += await _deleted(connection, [(turns, turns.c.id.in_(ids))])
        # Of several turns' words, these among them.
        these = sessions.c.id.in_(theirs)
        await connection.execute(sessions.update().where(these).values(summary="", summary_ts=""))
        if self._subject.session:  # by its row the rest is found
            return deleted
        left = sa.exists().where(turns.c.session_id == sessions.c.id)
        return deleted + await _deleted(connection, [(sessions, these & ~left)])

    async def _rest(self, connection: AsyncConnection) -> int:
        deleted = await _deleted(connection, self._own())
        if self._subject.session:
            of_it = spending.c.session_id == self._subject.session
            await connection.execute(spending.update().where(of_it).values(session_id=""))
        else:
            await self._unname(connection)
        return deleted

    def _own(self) -> Sequence[Where]:
        session, person = self._subject.session, self._person
        of_proposals = sa.select(proposals.c.id).where(self._proposal)
        both = [(watches, watches.c.proposal_id.in_(of_proposals)), (proposals, self._proposal)]
        if not session:
            mine = sa.select(callers.c.user_id).where(person.callers)
            return [
                *both,
                *_chats(person.chats),
                (chat_events, person.told),
                (feedback, person.feedback),
                (reservations, person.spent(reservations)),
                (caller_tokens, caller_tokens.c.user_id.in_(mine)),
                (callers, person.callers),
            ]
        here = sa.exists().where(  # by its place, which its id is made of
            sessions.c.id == session,
            of_team(sessions.c.team, HOME),  # alerts go only there
            sessions.c.channel == alert_threads.c.channel,
            sessions.c.thread_ts == alert_threads.c.thread_ts,
        )
        over_http = sa.exists().where(
            sessions.c.id == session,
            sessions.c.channel == chat_sessions.c.channel,
            sessions.c.thread_ts == chat_sessions.c.thread,
        )
        of_alerts = sa.select(alert_threads.c.id).where(here)
        return [
            *both,
            (reservations, reservations.c.session_id == session),
            (session_tokens, session_tokens.c.session_id == session),
            (alerts, alerts.c.thread_id.in_(of_alerts)),
            (alert_threads, here),
            *_chats(over_http),
            (incidents, _incidents_of([session])),
            (sessions, sessions.c.id == session),
        ]

    def _kept(self) -> Sequence[Where]:
        session, person = self._subject.session, self._person
        if session:
            return [(spending, spending.c.session_id == session)]
        return [
            (spending, person.spent(spending)),
            (proposals, (person.decided | person.voted) & ~self._proposal),
            (switches, person.switched),
            (incidents, _incidents_of(sa.select(turns.c.session_id).where(self._turn))),
        ]

    async def _unname(self, connection: AsyncConnection) -> None:
        person = self._person
        spent, switched = person.spent(spending), person.switched
        await connection.execute(spending.update().where(spent).values(user_id=""))
        await connection.execute(switches.update().where(switched).values(by_user=""))
        for row in (await connection.execute(sa.select(proposals).where(person.voted))).all():
            others = tuple(vote for vote in proposal_of(row).votes if vote.by != person.user)
            this = proposals.update().where(proposals.c.id == row.id)
            await connection.execute(this.values(votes=votes_text(others)))
        by_them = proposals.update().where(person.decided)
        await connection.execute(by_them.values(decided_by=None, reason=""))


def _chats(which: sa.ColumnElement[bool]) -> Sequence[Where]:
    of_chats = sa.select(chat_sessions.c.id).where(which)
    return [
        (chat_events, chat_events.c.session_id.in_(of_chats)),
        (chat_messages, chat_messages.c.session_id.in_(of_chats)),
        (chat_sessions, which),
    ]


def _incidents_of(of_sessions: Any) -> sa.ColumnElement[bool]:
    return (incidents.c.source == SESSIONS) & incidents.c.external_id.in_(of_sessions)


async def _deleted(connection: AsyncConnection, every: Sequence[Where]) -> int:
    gone = [await connection.execute(table.delete().where(where)) for table, where in every]
    return sum(each.rowcount for each in gone)


def _plain(value: Any) -> JsonValue:
    return value.isoformat() if isinstance(value, datetime) else value
