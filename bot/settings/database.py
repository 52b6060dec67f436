"""`[database]`: where Kortex keeps what it knows."""

from typing import Final

import sqlalchemy as sa
from pydantic import SecretStr, field_validator

from bot.settings.section import Section

_DRIVERS: Final = ("sqlite+aiosqlite", "postgresql+asyncpg")
_NOT_ONE: Final = (
    "is not the address of a database: sqlite+aiosqlite:///file or "
    "postgresql+asyncpg://user:password@host/name, with what is not a letter or digit of a password "
    "percent-encoded (p@ss is p%40ss), also where a variable holds it"
)
# https://www.postgresql.org/docs/current/libpq-ssl.html: asyncpg takes the same words, as `ssl`.
_SSL_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
# What both drivers know (the store's asyncpg, the engine's psycopg), and `sslmode`, said as `ssl`.
_OPTIONS: Final = frozenset({"host", "port", "ssl", "sslmode", "target_session_attrs"})
_BOTH: Final = (
    "behind the ? it may have sslmode, host, port and target_session_attrs; certificates are "
    "named in the environment (PGSSLROOTCERT, PGSSLCERT, PGSSLKEY)"
)


class DatabaseSettings(Section):
    """`[database]`."""

    url: SecretStr = SecretStr("sqlite+aiosqlite:///kortex.db")

    @field_validator("url")
    @classmethod
    def _known_driver(cls, url: SecretStr) -> SecretStr:
        """The words name nothing of the address: it may hold a password."""
        try:
            parsed = sa.make_url(url.get_secret_value())
        except (sa.exc.ArgumentError, ValueError):
            raise ValueError(_NOT_ONE) from None
        if parsed.drivername not in _DRIVERS or parsed.database in (None, "", ":memory:"):
            raise ValueError(_NOT_ONE)
        if parsed.drivername == "postgresql+asyncpg" and parsed.query:
            return _for_store(parsed)
        return url


def _for_store(parsed: sa.URL) -> SecretStr:
    """The address as asyncpg takes it."""
    options = dict(parsed.query)
    if not options.keys() <= _OPTIONS or {"ssl", "sslmode"} <= options.keys():
        raise ValueError(_BOTH)
    mode = options.pop("sslmode", options.get("ssl"))
    if mode is not None:
        if mode not in _SSL_MODES:
            raise ValueError(f"sslmode is one of {', '.join(_SSL_MODES)}")
        options["ssl"] = mode
    return SecretStr(parsed.set(query=options).render_as_string(hide_password=False))
