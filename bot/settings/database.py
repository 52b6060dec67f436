"""`[database]`: where Kortex keeps what it knows."""

from typing import Final

from pydantic import SecretStr, field_validator

from bot.settings.section import Section
from bot.store.address import POSTGRESQL, addressed, is_behind_pgbouncer

_NOT_ONE: Final = (
    "is not the address of a database: sqlite:///file or postgresql://user:password@host/name. "
    "Percent-encode special characters of the password (p@ss is p%40ss), also in a variable"
)
# https://www.postgresql.org/docs/current/libpq-ssl.html
_SSL_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_OPTIONS: Final = frozenset({"host", "port", "sslmode", "target_session_attrs"})
_KNOWN: Final = (
    "behind the ? it may have sslmode, host, port, target_session_attrs and pgbouncer; certificates are "
    "named in the environment (PGSSLROOTCERT, PGSSLCERT, PGSSLKEY)"
)


class DatabaseSettings(Section):
    """`[database]`."""

    url: SecretStr = SecretStr("sqlite:///kortex.db")

    @field_validator("url")
    @classmethod
    def _known_driver(cls, url: SecretStr) -> SecretStr:
        """The words name nothing of the address: it may hold a password."""
        try:
            parsed = addressed(url.get_secret_value())
        except ValueError:
            raise ValueError(_NOT_ONE) from None
        is_behind_pgbouncer(url.get_secret_value())
        if parsed.drivername == POSTGRESQL:
            if not parsed.query.keys() <= _OPTIONS:
                raise ValueError(_KNOWN)
            if parsed.query.get("sslmode", "prefer") not in _SSL_MODES:
                raise ValueError(f"sslmode is one of {', '.join(_SSL_MODES)}")
        return url
