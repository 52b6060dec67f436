"""Block Kit rules."""

from collections.abc import Sequence

from bot.workspace.json_access import JsonObject


def check_blocks(blocks: Sequence[JsonObject], surface: str) -> None:
    """TODO."""


def check_view(view: JsonObject, kind: str) -> None:
    """TODO."""
