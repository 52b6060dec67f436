"""The address of a database: SQLite's or PostgreSQL's, under the driver that Kortex has for it."""

from typing import Final

import sqlalchemy as sa

SQLITE: Final = "sqlite"
POSTGRESQL: Final = "postgresql+psycopg"
# Releases before had drivers of an event loop, and wanted them named.
_DRIVERS: Final = {
    "sqlite": SQLITE,
    "sqlite+aiosqlite": SQLITE,
    "postgres": POSTGRESQL,
    "postgresql": POSTGRESQL,
    "postgresql+asyncpg": POSTGRESQL,
    POSTGRESQL: POSTGRESQL,
}


def addressed(url: str) -> sa.URL:
    """`sqlite:///file` or `postgresql://…`, with libpq's options. Raises ValueError for any other."""
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError as error:
        raise ValueError("database url: it cannot be read") from error
    driver = _DRIVERS.get(parsed.drivername)
    if driver is None or parsed.database in (None, "", ":memory:"):
        raise ValueError(
            f"database url: {parsed.drivername} is not sqlite:///file or postgresql://host/name"
        )
    named = parsed.set(drivername=driver)
    if driver == POSTGRESQL and "ssl" in named.query and "sslmode" not in named.query:
        mode = {"sslmode": named.query["ssl"]}  # as a driver before called it
        named = named.difference_update_query(["ssl"]).update_query_dict(mode)
    return named
