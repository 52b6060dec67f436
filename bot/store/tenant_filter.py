"""The scope of reads: every workspace, home, or one other workspace that installed the app.

Home's rows are all that belong to no other workspace, also of one that has removed the app.
"""

from typing import TypeAlias

import sqlalchemy as sa

from bot.domain.tenancy import HOME
from bot.store.access_tables import installations

# A tenant, or None for everybody.
TenantScope: TypeAlias = str | None


def of_team(team: sa.ColumnElement[str], scope: TenantScope) -> sa.ColumnElement[bool]:
    if scope is None:
        return sa.true()
    if scope != HOME:
        return team == scope
    return team.not_in(sa.select(installations.c.team))


def of_session(session: sa.ColumnElement[str], scope: TenantScope) -> sa.ColumnElement[bool]:
    """By a session's id, which names its team (`bot.store.sessions`); one of none is home's."""
    if scope is None:
        return sa.true()
    if scope != HOME:
        # A range, which an index is used for; ";" comes after ":".
        return sa.and_(session >= f"session:{scope}:", session < f"session:{scope};")
    begins = sa.literal("session:") + installations.c.team + sa.literal(":")
    of_other = sa.func.substr(session, 1, sa.func.length(begins)) == begins
    return ~sa.exists().where(of_other)


def of_tenant(tenant: sa.ColumnElement[str], scope: TenantScope) -> sa.ColumnElement[bool]:
    return sa.true() if scope is None else tenant == scope
