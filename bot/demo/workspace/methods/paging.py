"""Cursor pages. A cursor is opaque to callers and belongs to the list it came from."""

import base64
import binascii
from collections.abc import Sequence
from typing import TypeVar

from bot.demo.workspace.arguments import Arguments
from bot.demo.workspace.errors import SlackRefused

T = TypeVar("T")


def page(
    items: Sequence[T], arguments: Arguments, default: int, maximum: int
) -> tuple[Sequence[T], str]:
    """The page and the next cursor, empty on the last one.

    Raises SlackRefused("invalid_limit" | "invalid_cursor").
    """
    limit = arguments.number("limit", default)
    if limit < 1 or (arguments.given("limit") and limit > maximum):
        raise SlackRefused("invalid_limit")
    start = _start(arguments.text("cursor"))
    if start > len(items):
        raise SlackRefused("invalid_cursor")
    end = start + limit
    more = end < len(items)
    cursor = base64.b64encode(f"next:{end}".encode()).decode() if more else ""
    return items[start:end], cursor


def _start(cursor: str) -> int:
    if not cursor:
        return 0
    try:
        kind, _, position = base64.b64decode(cursor, validate=True).decode().partition(":")
        if kind == "next":
            return int(position)
    except (binascii.Error, ValueError):
        pass
    raise SlackRefused("invalid_cursor")
