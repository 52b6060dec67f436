"""Where the errors of SQLAlchemy and its drivers become ours.

StorageUnavailable (bot.ports)
└── ConnectionLost   the connection went away; what is idempotent may be tried again

Broken statements and violated constraints are bugs and pass unchanged.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from bot.ports.failures import StorageUnavailable

_BUGS = (
    sa.exc.IntegrityError,
    sa.exc.ProgrammingError,
    sa.exc.DataError,
    sa.exc.NotSupportedError,
)
# https://www.postgresql.org/docs/current/errcodes-appendix.html: connection exceptions, shutdown
# and start-up, too many connections, ended because it stood still inside a transaction;
# serialization failure and deadlock roll back and may rerun.
_TRANSIENT = ("08", "57P01", "57P02", "57P03", "53300", "25P03", "40001", "40P01")


class ConnectionLost(StorageUnavailable):
    """The connection went away, or the server gave the transaction up."""


@contextmanager
def storage_errors() -> Iterator[None]:
    """Raises StorageUnavailable, ConnectionLost for what the database or its connection did."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        if isinstance(error, _BUGS):
            raise
        raise _named(error)(f"the database failed: {error.orig}") from error
    except sa.exc.StatementError as error:
        if isinstance(error.orig, StorageUnavailable):
            raise error.orig from error  # a column could not take its value
        raise
    except TimeoutError as error:
        raise StorageUnavailable("the database did not answer in time") from error
    except sa.exc.TimeoutError as error:
        raise StorageUnavailable("every database connection is busy") from error
    except OSError as error:
        raise ConnectionLost(f"the database cannot be reached: {error}") from error


def _named(error: sa.exc.DBAPIError) -> type[StorageUnavailable]:
    state = getattr(error.orig, "sqlstate", None) or ""
    if error.connection_invalidated or state.startswith(_TRANSIENT):
        return ConnectionLost
    return StorageUnavailable
