"""Whose rows are read: everybody's, home's, or those of one other workspace that installed the app.

Home's are all that is of no other workspace, also of one that removed the app since.
"""

from typing import TypeAlias

import sqlalchemy as sa

from bot.domain.tenancy import HOME
from bot.store.workspace_tables import installations

# A tenant, or None for everybody.
Whose: TypeAlias = str | None


def of_team(team: sa.ColumnElement[str], whose: Whose) -> sa.ColumnElement[bool]:
    """By a row's team."""
    if whose is None:
        return sa.true()
    if whose != HOME:
        return team == whose
    return team.not_in(sa.select(installations.c.team))


def of_session(session: sa.ColumnElement[str], whose: Whose) -> sa.ColumnElement[bool]:
    """By a session's id, which names its team (`bot.store.sessions`); one of none is home's."""
    if whose is None:
        return sa.true()
    if whose != HOME:
        # A range, which an index is used for; ";" comes after ":".
        return sa.and_(session >= f"session:{whose}:", session < f"session:{whose};")
    begins = sa.literal("session:") + installations.c.team + sa.literal(":")
    of_other = sa.func.substr(session, 1, sa.func.length(begins)) == begins
    return ~sa.exists().where(of_other)


def of_tenant(tenant: sa.ColumnElement[str], whose: Whose) -> sa.ColumnElement[bool]:
    """By a row's tenant."""
    return sa.true() if whose is None else tenant == whose
