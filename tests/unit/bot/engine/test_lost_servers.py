"""Transient errors of a server are waited for, with any wording of the driver."""

import psycopg
import pytest
import sqlalchemy as sa
from dbos._utils import retriable_postgres_exception

from bot.engine.dbos_setup import retry_lost_connections

REFUSED = (
    'connection is bad: connection to server on socket "/run/.s.PGSQL.5432" failed: No such file'
)


@pytest.mark.parametrize(
    "words",
    [
        REFUSED,
        "[Errno -2] Name or service not known",
        "consuming input failed: could not receive data from server: Connection reset by peer",
        "the connection is lost",
    ],
)
def test_an_unreachable_server_is_waited_for(words: str) -> None:
    retry_lost_connections()
    retry_lost_connections()

    assert retriable_postgres_exception(raised(psycopg.OperationalError(words)))


def test_a_refusal_of_the_server_is_not_retried_forever() -> None:
    retry_lost_connections()

    assert not retriable_postgres_exception(raised(psycopg.errors.InvalidPassword("who is that")))
    assert not retriable_postgres_exception(raised(psycopg.errors.UniqueViolation("twice")))


def raised(error: psycopg.Error) -> sa.exc.DBAPIError:
    """As SQLAlchemy hands it on where a connection is made."""

    def connect() -> None:
        raise error

    engine = sa.create_engine("postgresql+psycopg://", creator=connect, poolclass=sa.NullPool)
    with pytest.raises(sa.exc.DBAPIError) as found:
        engine.connect()
    return found.value
