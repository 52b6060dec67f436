"""Options that several commands share, and the types of their values."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import click

from bot.settings.environment import environment
from bot.settings.section import duration
from tools.time_zones import is_zone

WHEN: Final = '"24h" ago, "2026-11-21" or an ISO time'
_LOCALTIME: Final = Path("/etc/localtime")  # a link into the zones' files on Linux and macOS


def instant(text: str) -> datetime:
    """`24h` ago, or an ISO date or time, UTC unless it says otherwise."""
    try:
        ago = duration(text)
        if isinstance(ago, timedelta):
            return datetime.now(UTC) - ago
    except (ValueError, OverflowError):
        pass
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        forms = '"24h", "2026-11-21" or "2026-11-21T14:00:00+00:00"'
        raise click.BadParameter(f"{text}: write {forms}") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def words(text: str) -> str:
    # Neither spaces nor characters without a width are words.
    if not any(map(str.isprintable, text.strip())):
        raise click.BadParameter("is empty")
    return text


def zone(text: str) -> str:
    if not is_zone(text):
        raise click.BadParameter(f'{text}: write a name such as "Europe/Berlin" or "UTC"')
    return text


def local_zone() -> str:
    """The time zone of this machine by name; UTC where the machine does not say."""
    linked = os.path.realpath(_LOCALTIME).partition("zoneinfo/")[2]
    named = (environment().get("TZ", "").removeprefix(":"), linked.removeprefix("posix/"))
    return next((name for name in named if is_zone(name)), "UTC")


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
zone_option = click.option(
    "--time-zone",
    "zone",
    type=zone,
    default=local_zone,
    metavar="NAME",
    show_default="this machine's",
    help="The time zone of clock times in the question.",
)
session_option = click.option("--session", default="", metavar="ID", help="This session, by id.")
person_option = click.option(
    "--person",
    default="",
    metavar="PERSON",
    help='This person: "U0123456" of home, "T0123456/U0123456" elsewhere.',
)
reason_option = click.option(
    "--reason", required=True, metavar="TEXT", help="Written into the audit log."
)
jsonl_option = click.option(
    "--jsonl",
    is_flag=True,
    expose_value=False,
    help="One JSON object a line (the only format, and default).",
)


def exactly_one(**given: object) -> None:
    """Raise a usage error unless exactly one of these options has a value."""
    names = " or ".join(f"--{name}" for name in given)
    if sum(map(bool, given.values())) != 1:
        raise click.UsageError(f"Give {names}, and only one of them.", click.get_current_context())
