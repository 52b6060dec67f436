"""Which values of a configuration are secrets: those declared so, and passwords within addresses."""

from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, SecretStr


def secret_values(value: object) -> Iterator[str]:
    """Every secret within a table, for literal masking wherever text leaves."""
    match value:
        case SecretStr():
            yield value.get_secret_value()
        case BaseModel():
            for name in type(value).model_fields:
                yield from secret_values(getattr(value, name))
        case dict():
            for item in value.values():
                yield from secret_values(item)
        case tuple():
            for item in value:
                yield from secret_values(item)
        case str() if "://" in value and "@" in value:
            yield from _passwords(value)
        case _:
            return


def _passwords(address: str) -> Iterator[str]:
    """As it is written, and as it is sent."""
    try:
        password = urlsplit(address.strip()).password
    except ValueError:  # half an IPv6 address
        return
    if password:
        yield password
        yield unquote(password)
