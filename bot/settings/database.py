"""`[database]`: where Kortex keeps what it knows."""

from typing import Final

import sqlalchemy as sa
from pydantic import SecretStr, field_validator

from bot.settings.section import Section

_DRIVERS: Final = ("sqlite+aiosqlite", "postgresql+asyncpg")
_NOT_ONE: Final = (
    "is not the address of a database: sqlite+aiosqlite:///file or "
    "postgresql+asyncpg://user:password@host/name"
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
        return url
