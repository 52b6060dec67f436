"""The port of an alert sender, and the common part: authentication and parsing.

Its contract is `tests/contract/test_alert_wires.py`.
"""

import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from bot.domain.alerts import Alert
from tools.outside_json import parse, set_instant

# By the names of headers in lower case.
Headers = Mapping[str, str]
ModelT = TypeVar("ModelT", bound=BaseModel)


class Unreadable(Exception):
    """A body of another sender. The message says where it is wrong and repeats no value."""


class AlertWire(Protocol):
    """One sender's webhook. Pure; nothing a sender writes makes it fail but as `Unreadable`."""

    @property
    def source(self) -> str:
        """Its name, which ends the path."""
        ...

    def admits(self, headers: Headers, body: bytes) -> bool:
        """Whether the request carries the secret, or its signature; compared in constant time."""
        ...

    def read(self, headers: Headers, body: bytes, received_at: datetime) -> Sequence[Alert]:
        """The alerts of an admitted request; empty if it is about something else.

        None changed later than `received_at`. Raises Unreadable.
        """
        ...


def has_token(headers: Headers, token: str) -> bool:
    """Whether it is the bearer token; an empty one admits no client."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    same = hmac.compare_digest(given.strip().encode("utf-8", "replace"), token.encode())
    return bool(token) and scheme.lower() == "bearer" and same


def parsed(model: type[ModelT], body: bytes) -> ModelT:
    """The body as that model. Raises Unreadable."""
    try:
        return parse(TypeAdapter(model), body)
    except ValidationError as error:
        raise unreadable(error) from None


def unreadable(error: ValidationError) -> Unreadable:
    """Where it is wrong and why, never the value: it may be a secret."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the body"
    return Unreadable(f"{where}: {first['msg']}")


def since(at: datetime | None, received_at: datetime) -> datetime:
    """A sender's instant, or that of receipt where none is set.

    It is not after the receipt: a clock that is ahead must not hide news.
    """
    return min(set_instant(at) or received_at, received_at)
