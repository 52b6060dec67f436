"""The rows of one person: a user's id means another person in each workspace.

`U...` is a person of home, its guests included, or a caller over HTTP (`@...`); `T.../U...` one of
another workspace that installed the app.
"""

from typing import Final

import sqlalchemy as sa

from bot.domain.tenancy import HOME
from bot.store.access_tables import callers, installations
from bot.store.chat_tables import chat_events, chat_sessions
from bot.store.columns import json_text
from bot.store.database import Database
from bot.store.tables import audit, feedback, proposals, switches, turns
from bot.store.tenant_filter import of_session, of_team, of_tenant

_OUR_OWN: Final = "@"  # what callers' ids begin with; they may hold a "/"


class UnknownWorkspace(Exception):
    """The person is of a workspace that never installed the app. Nothing was done."""


class PersonRows:
    """Conditions on tables that match exactly one person's rows."""

    def __init__(self, person: str) -> None:
        team, _, user = ("", "", person) if person.startswith(_OUR_OWN) else person.rpartition("/")
        self.tenant, self.user = team or HOME, user
        self.turns = (turns.c.asker_user == user) & of_team(turns.c.asker_team, self.tenant)
        self.asked = (proposals.c.asker_user == user) & of_team(proposals.c.asker_team, self.tenant)
        of_votes = proposals.c.votes.contains(f'"{user}"', autoescape=True)
        here = of_team(
            proposals.c.team, self.tenant
        )  # other workspaces' people decide nothing in it
        self.voted, self.decided = of_votes & here, (proposals.c.decided_by == user) & here
        self.feedback = (feedback.c.user_id == user) & of_team(feedback.c.team, self.tenant)
        owner = chat_sessions.c.owner_user == user
        self.chats = owner & of_team(chat_sessions.c.owner_team, self.tenant)
        self.told = self._of_home(chat_events.c.to_user == user)
        self.switched = self._of_home(switches.c.by_user == user)
        self.callers = self._callers()

    async def check_workspace(self, database: Database) -> None:
        """Raises UnknownWorkspace, StorageUnavailable."""
        if self.tenant == HOME:
            return

        known = sa.select(installations.c.team).where(installations.c.team == self.tenant)
        if await database.scalar(known) is None:
            raise UnknownWorkspace(
                f"{self.tenant} never installed the app. People of home, and guests there, go by "
                f"their bare id: {self.user}"
            )

    def others_turns(self) -> sa.Select[tuple[str]]:
        """Ids of turns of other workspaces' people with the same id."""
        return sa.select(turns.c.id).where(turns.c.asker_user == self.user, ~self.turns)

    def spent(self, table: sa.Table) -> sa.ColumnElement[bool]:
        """Of spending or reservations, which hold the budget's owner; the turn holds the asker."""
        own = sa.select(turns.c.id).where(self.turns)
        by_tenant = of_tenant(table.c.tenant, self.tenant)
        by_tenant &= table.c.turn_id.not_in(self.others_turns())
        return (table.c.user_id == self.user) & (by_tenant | table.c.turn_id.in_(own))

    def audit_rows(self, *, named: bool) -> sa.ColumnElement[bool]:
        """Of the audit log; `named`: also rows whose body names them."""
        who = audit.c.actor == self.user
        if named:
            who |= audit.c.body.contains(json_text(self.user), autoescape=True)
        session = sa.select(turns.c.session_id)
        own = audit.c.session_id.in_(session.where(self.turns))
        others = audit.c.session_id.in_(session.where(turns.c.asker_user == self.user, ~self.turns))
        return who & (own | (of_session(audit.c.session_id, self.tenant) & ~others))

    def _of_home(self, where: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
        return where if self.tenant == HOME else where & sa.false()

    def _callers(self) -> sa.ColumnElement[bool]:
        if self.tenant != HOME:
            return callers.c.account == f"{self.tenant}/{self.user}"
        elsewhere = sa.select(installations.c.team + sa.literal(f"/{self.user}"))
        of_a_team = callers.c.account.endswith(f"/{self.user}", autoescape=True)
        return (
            (callers.c.user_id == self.user)
            | (callers.c.account == self.user)
            | (of_a_team & callers.c.account.not_in(elsewhere))
        )
