"""The last known names of channels: `NameStore` in the database.

One row a channel, aged by the database's clock, so that every replica uses the same name.
"""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, Final

import sqlalchemy as sa

from bot.domain.channel import KeptName
from bot.domain.ids import Place
from bot.store.database import Database
from bot.store.dialect import INSERT, now
from bot.store.tables import channel_names as table


class StoredNames:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, place: Place) -> KeptName | None:
        row = await self._database.first(_NAME, {"team": place.team, "channel": place.channel})
        if row is None:
            return None
        return KeptName(row.name, row.read_at, (row.now - row.read_at).total_seconds())

    async def last_read(self, places: Collection[Place]) -> Mapping[Place, str]:
        """What those were called when they were last read, however long ago: for eyes alone."""
        by_key = {(place.team, place.channel): place for place in places}
        keys = sa.tuple_(table.c.team, table.c.channel)

        if not by_key:
            return {}
        found = await self._database.rows(sa.select(table).where(keys.in_(list(by_key))))
        names = {(row.team, row.channel): row.name for row in found}
        return {place: names.get((place.team, place.channel), "") for place in places}

    async def keep(self, place: Place, name: str, instead_of: KeptName | None) -> bool:
        row: dict[str, Any] = {"team": place.team, "channel": place.channel, "name": name}
        if instead_of is not None:
            row |= {"was": instead_of.name, "was_read_at": instead_of.written_at}

        keeping = _keeping(self._database.dialect, again=instead_of is not None)
        return await self._database.execute(keeping, row) == 1

    async def forget(self, place: Place) -> None:
        insert = self._database.insert(table).values(
            team=place.team, channel=place.channel, name="", read_at=now()
        )
        await self._database.execute(
            insert.on_conflict_do_update(
                index_elements=["team", "channel"],
                set_={"name": "", "read_at": insert.excluded.read_at},
            )
        )


_NAME: Final = sa.select(table.c.name, table.c.read_at, now().label("now")).where(
    table.c.team == sa.bindparam("team"), table.c.channel == sa.bindparam("channel")
)


@cache
def _keeping(dialect: str, *, again: bool) -> sa.Executable:
    """Inserts a name, `again` in the place of one that is as it was read."""
    given: dict[str, Any] = {name: sa.bindparam(name) for name in ("team", "channel", "name")}
    insert = INSERT[dialect](table).values(given | {"read_at": now()})
    as_read = (
        table.c.name == sa.bindparam("was"),
        table.c.read_at == sa.bindparam("was_read_at"),
    )
    return insert.on_conflict_do_update(
        index_elements=["team", "channel"],
        set_={"name": insert.excluded.name, "read_at": insert.excluded.read_at},
        where=sa.and_(*as_read) if again else sa.false(),
    )
