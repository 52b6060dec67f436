"""`[database] url`: one address for two drivers that name TLS differently."""

import pytest
import sqlalchemy as sa
from pydantic import ValidationError

from bot.settings.database import DatabaseSettings
from bot.wiring.rules import engine_database

ADDRESS = "postgresql+asyncpg://kortex:secret-pw@db.example.com/kortex"


@pytest.mark.parametrize("word", ["ssl", "sslmode"])
def test_tls_that_is_asked_for_is_asked_for_by_the_store_and_by_the_engine(word: str) -> None:
    url = _stored(f"{ADDRESS}?{word}=verify-full")
    assert sa.make_url(url).query == {"ssl": "verify-full"}
    engine = sa.make_url(engine_database(url))
    assert engine.query["sslmode"] == "verify-full"
    assert "ssl" not in engine.query
    assert engine.password == "secret-pw"


def test_an_address_without_options_stays_as_it_is() -> None:
    assert _stored(ADDRESS) == ADDRESS


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("sslrootcert=/ca.pem", "PGSSLROOTCERT"),
        ("application_name=kortex", "behind the ?"),
        ("ssl=require&sslmode=require", "behind the ?"),
        ("sslmode=required", "sslmode is one of disable"),
        ("sslmode=require&sslmode=disable", "sslmode is one of disable"),
    ],
)
def test_an_option_that_one_of_them_does_not_know_is_refused_without_the_password(
    options: str, told: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        _stored(f"{ADDRESS}?{options}")
    assert told in str(refused.value)
    assert "secret-pw" not in str(refused.value)


def _stored(url: str) -> str:
    return DatabaseSettings.model_validate({"url": url}).url.get_secret_value()
