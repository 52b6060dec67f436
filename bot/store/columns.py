"""The column types of every table: instants, text and JSON, equal on SQLite and PostgreSQL.

Text is cleaned here, at the last edge before a driver, so repositories need not; outside text is
redacted here as well. JSON is one text for equal values.
"""

from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from weakref import WeakKeyDictionary

import orjson
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

from tools.output import written_number

# By it the arguments of an index are judged; unsaid, it is that of a driver, 1 MB that SQLite never needs.
sa.dialects.registry.register("postgresql", "sqlalchemy.dialects.postgresql.base", "PGDialect")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def clean(text: str) -> str:
    """Replace what PostgreSQL cannot store, NUL and lone surrogates, by U+FFFD."""
    if text.isascii() and "\x00" not in text:
        return text
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole.replace("\x00", "\ufffd")


def _stored(value: str | None) -> str | None:
    return value if value is None else clean(value)


def to_micros(at: datetime) -> int:
    """Microseconds since the epoch. Raises ValueError for a naive datetime."""
    if at.tzinfo is None:
        raise ValueError("an instant needs a time zone")
    return (at - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


class Instant(TypeDecorator[datetime]):
    """An aware UTC datetime, stored as integer microseconds since the epoch.

    Integers compare the same on both databases; SQLite has no type for instants and would compare
    their text.
    """

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:  # noqa: ARG002 - SQLAlchemy's signature
        return None if value is None else to_micros(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - SQLAlchemy's signature
        return None if value is None else from_micros(value)


class CleanText(TypeDecorator[str]):
    """Text of any length, ordered by code point on both databases."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[str]:
        """PostgreSQL would otherwise order by the cluster's locale, which ignores punctuation."""
        if dialect.name == "postgresql":
            return postgresql.TEXT(collation="C")
        return sa.TEXT()

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's signature
        return _stored(value)

    def bind_processor(self, dialect: Dialect) -> Callable[[str | None], str | None] | None:  # noqa: ARG002 - SQLAlchemy's signature
        """The same, without the three calls around it: most values are texts."""
        return _stored


class EngineText(CleanText):
    """Text of the workflow engine's tables, in the order of its database.

    In another order, PostgreSQL would use none of the engine's indexes and read every row.
    """

    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[str]:  # noqa: ARG002 - SQLAlchemy's signature
        """No order of its own on either database."""
        return sa.TEXT()


class OutsideText(CleanText):
    """Text written by people, models or machines: redacted by the redactor of `redact_with`."""

    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Python to database. Raises what the redactor raises: what it cannot redact is not kept."""
        redact = _redactors.get(dialect)
        return super().process_bind_param(redact(value) if redact and value else value, dialect)

    def bind_processor(self, dialect: Dialect) -> Callable[[str | None], str | None] | None:
        """Not that of clean text: it would redact nothing."""
        return partial(self.process_bind_param, dialect=dialect)


_redactors: WeakKeyDictionary[Dialect, Callable[[str], str]] = WeakKeyDictionary()


def redact_with(dialect: Dialect, redact: Callable[[str], str]) -> None:
    """From now on every text from outside passes this on its way into that database."""
    _redactors[dialect] = redact


def text(name: str, *, default: bool = False) -> sa.Column[str]:
    """A column of our own words and ids; `default`: empty for rows that do not name it."""
    return sa.Column(
        name, CleanText, nullable=False, server_default=sa.text("''") if default else None
    )


def outside(name: str, *, default: bool = False) -> sa.Column[str]:
    """What people, models or machines wrote. Of `messages` and `evidence` the turn has redacted it."""
    return sa.Column(
        name, OutsideText, nullable=False, server_default=sa.text("''") if default else None
    )


def sequence() -> sa.Column[int]:
    """The number of a row, set by its writer."""
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column("seq", number, primary_key=True, autoincrement=False)


def index_where(name: str, column: str, condition: str) -> sa.Index:
    """An index of the rows that meet a condition, which queries must repeat literally."""
    where = sa.text(condition)
    return sa.Index(name, column, sqlite_where=where, postgresql_where=where)


def json_text(value: object) -> str:
    """Canonical text: sorted keys, no spaces. Takes JSON values and dataclasses of them."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:  # a lone surrogate, an integer beyond 64 bits, or no JSON at all
        return orjson.dumps(_cleaned(value), option=orjson.OPT_SORT_KEYS).decode()


def _cleaned(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return _cleaned(asdict(value))
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(each) for each in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return written_number(value)
    return value
