"""Which values of a configuration are secrets: those declared so, and passwords within addresses."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, SecretStr


def secret_values(value: object) -> Iterator[str]:
    """Every secret within a table, for masking in all output."""
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


def masked_json(table: BaseModel) -> bytes:
    """All of a table, with stars for declared secrets; the same for equal ones.

    Not pydantic's, which would build and keep a serializer for each table: 0.4 MB for one use. Not
    orjson, which writes no integer over 64 bits: an action's undo may hold one.
    """
    return json.dumps(table, default=_plain).encode()


def _plain(value: Any) -> object:
    match value:
        case BaseModel():
            return dict(value)
        case timedelta():
            return value.total_seconds()
        case _:  # a secret, which becomes stars, or an address
            return str(value)


def _passwords(address: str) -> Iterator[str]:
    try:
        password = urlsplit(address.strip()).password
    except ValueError:  # half an IPv6 address
        return
    if password:
        yield password
        yield unquote(password)
