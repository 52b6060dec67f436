"""The address of a database: SQLite's or PostgreSQL's, with the driver that Kortex has for it."""

from typing import Final

import sqlalchemy as sa

SQLITE: Final = "sqlite+aiosqlite"
POSTGRESQL: Final = "postgresql+psycopg"
# Earlier releases used other drivers and wanted them in the address.
_DRIVERS: Final = {
    "sqlite": SQLITE,
    SQLITE: SQLITE,
    "postgres": POSTGRESQL,
    "postgresql": POSTGRESQL,
    "postgresql+asyncpg": POSTGRESQL,
    POSTGRESQL: POSTGRESQL,
}
_PGBOUNCER: Final = "pgbouncer"


def addressed(url: str) -> sa.URL:
    """`sqlite:///file` or `postgresql://…`, with libpq's options. Raises ValueError for any other."""
    parsed = _parsed(url)
    driver = _DRIVERS.get(parsed.drivername)
    if driver is None or parsed.database in (None, "", ":memory:"):
        raise ValueError(
            f"database url: {parsed.drivername} is not sqlite:///file or postgresql://host/name"
        )
    named = parsed.set(drivername=driver).difference_update_query([_PGBOUNCER])
    if driver == POSTGRESQL and "ssl" in named.query and "sslmode" not in named.query:
        mode = {"sslmode": named.query["ssl"]}  # the name of an earlier driver
        named = named.difference_update_query(["ssl"]).update_query_dict(mode)
    return named


def is_behind_pgbouncer(url: str) -> bool:
    """Whether the address says `?pgbouncer=true`. Raises ValueError for another value.

    PgBouncer in transaction mode lends a connection for one transaction: no state of a session
    outlives it. The name and the values are those of Prisma.
    """
    given = _parsed(url).query.get(_PGBOUNCER, "false")
    if given not in ("true", "false"):
        raise ValueError("pgbouncer is true or false")
    return given == "true"


def synchronous(url: str) -> sa.URL:
    """The same address for a program without an event loop. Raises ValueError."""
    named = addressed(url)
    return named.set(drivername="sqlite") if named.drivername == SQLITE else named


def _parsed(url: str) -> sa.URL:
    try:
        return sa.make_url(url)
    except sa.exc.ArgumentError as error:
        raise ValueError("database url: it cannot be read") from error
