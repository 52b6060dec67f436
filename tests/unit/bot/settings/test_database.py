"""`[database] url`: every name that it may have, and what may stand behind its question mark."""

import pytest
import sqlalchemy as sa
from pydantic import ValidationError

from bot.app.rules import engine_database
from bot.settings.database import DatabaseSettings
from bot.store.address import addressed, is_behind_pgbouncer

ADDRESS = "postgresql://kortex:secret-pw@db.example.com/kortex"
AS_BEFORE = "postgresql+asyncpg://kortex:secret-pw@db.example.com/kortex"


@pytest.mark.parametrize("options", ["ssl=verify-full", "sslmode=verify-full"])
@pytest.mark.parametrize(
    "address", [ADDRESS, AS_BEFORE, "postgres" + ADDRESS.removeprefix("postgresql")]
)
def test_requested_tls_is_used(address: str, options: str) -> None:
    url = _stored(f"{address}?{options}")
    for used in (addressed(url), sa.make_url(engine_database(url))):
        assert used.drivername == "postgresql+psycopg"
        assert used.query["sslmode"] == "verify-full"
        assert "ssl" not in used.query
        assert used.password == "secret-pw"


@pytest.mark.parametrize("name", ["sqlite", "sqlite+aiosqlite"])
def test_both_names_mean_a_file(name: str) -> None:
    url = _stored(f"{name}:////var/lib/kortex.db")
    assert engine_database(url) == "sqlite:////var/lib/kortex.db"
    assert addressed(url).database == "/var/lib/kortex.db"


@pytest.mark.parametrize(
    "url", ["mysql://h/d", "sqlite://", "sqlite:///:memory:", "postgresql://h", "no"]
)
def test_an_invalid_address_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="is not the address of a database"):
        _stored(url)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("sslrootcert=/ca.pem", "PGSSLROOTCERT"),
        ("application_name=kortex", "behind the ?"),
        ("ssl=require&sslmode=require", "behind the ?"),
        ("sslmode=required", "sslmode is one of disable"),
        ("sslmode=require&sslmode=disable", "sslmode is one of disable"),
        ("pgbouncer=1", "pgbouncer is true or false"),
    ],
)
def test_an_unknown_option_is_refused_without_the_password(options: str, told: str) -> None:
    with pytest.raises(ValidationError) as refused:
        _stored(f"{ADDRESS}?{options}")
    assert told in str(refused.value)
    assert "secret-pw" not in str(refused.value)


def test_pgbouncer_is_not_an_option_of_the_driver() -> None:
    url = _stored(f"{ADDRESS}?pgbouncer=true&sslmode=require")
    assert is_behind_pgbouncer(url)
    for used in (addressed(url), sa.make_url(engine_database(url))):
        assert used.query == {"sslmode": "require"}


def _stored(url: str) -> str:
    return DatabaseSettings.model_validate({"url": url}).url.get_secret_value()
