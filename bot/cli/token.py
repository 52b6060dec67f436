"""`kortex token`: make, list and revoke the tokens of callers over HTTP."""

import re
import sys
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from typing import Final

import click
from pydantic import JsonValue

from bot.app.stores import open_stores
from bot.cli.display import print_json, print_rows
from bot.cli.exit_codes import FAILED, OK
from bot.cli.invocation import complain, configured, operator
from bot.cli.options import json_option
from bot.domain.callers import CallerKind, KnownCaller, TokenEntry, caller_id
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.settings.section import LONGEST, duration
from bot.store.callers import CallerDiffers

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
# https://docs.slack.dev/reference/objects/user-object: U or W, and T of a workspace.
_ACCOUNT: Final = re.compile(r"(?:T[A-Z0-9]{1,30}/)?[UW][A-Z0-9]{1,30}")


@click.group()
def token() -> None:
    """Manage the tokens of people and programs that call over HTTP."""


@token.command()
@click.argument("name")
@click.option("--service", is_flag=True, help="For a program, which can never confirm.")
@click.option(
    "--role", "roles", multiple=True, metavar="ROLE", help="A role of [roles.ROLE]; repeatable."
)
@click.option(
    "--slack",
    "account",
    default="",
    metavar="USER",
    help="The person's Slack user id (U0123 or T0123/U0123), for the roles of that account.",
)
@click.option(
    "--expires", default="", metavar="TIME", help="Lifetime, such as 12h or 90d (default: never)."
)
@json_option
@configured
async def create(
    settings: Settings,
    name: str,
    service: bool,
    roles: tuple[str, ...],
    account: str,
    expires: str,
    as_json: bool,
) -> int:
    """Create a token for NAME. It is shown once.

    \b
    Examples:
      kortex token create alice --slack U0123ABCD --expires 90d
      kortex token create ci --service --role responder
    """
    kind = CallerKind.SERVICE if service else CallerKind.PERSON
    caller = KnownCaller(caller_id(kind, name), kind, name, frozenset(roles), account)
    _check(caller, settings)
    lives = _lives(expires)
    async with AsyncExitStack() as stack:
        stores = await open_stores(settings, stack)
        try:
            made = await stores.callers.create(caller, lives, operator())
        except CallerDiffers as error:
            raise ConfigurationError(str(error)) from error
    if as_json:
        print_json({"id": made.id, "token": made.token, "caller": caller.user})
        return OK
    print(made.token)
    print(
        f"This is {caller.name}'s, as {made.id}; it is not shown again. Callers send it as "
        "`Authorization: Bearer ...`.",
        file=sys.stderr,
    )
    return OK


@token.command("list")
@json_option
@configured
async def show_all(settings: Settings, as_json: bool) -> int:
    """List every token: whose it is, its state, and when it was used."""
    async with AsyncExitStack() as stack:
        found = await (await open_stores(settings, stack)).callers.tokens()
    if as_json:
        print_json([_entry_json(each) for each in found])
        return OK
    print_rows([_row(each) for each in found])
    if not found:
        print("There is no token yet: kortex token create NAME")
    return OK


@token.command()
@click.argument("token_id", metavar="ID")
@configured
async def revoke(settings: Settings, token_id: str) -> int:
    """Revoke the token ID on every replica. Exit 1: no live token has this id."""
    async with AsyncExitStack() as stack:
        done = await (await open_stores(settings, stack)).callers.revoke(token_id, operator())
    if not done:
        complain("no live token has this id; see `kortex token list`")
        return FAILED
    print(f"{token_id} is now revoked")
    return OK


def _check(caller: KnownCaller, settings: Settings) -> None:
    if not _NAME.fullmatch(caller.name):
        raise ConfigurationError(
            "NAME: 1 to 64 of a-z, 0-9, '.', '_' and '-', beginning with a letter or digit"
        )
    if caller.account and (caller.kind is CallerKind.SERVICE or caller.roles):
        raise ConfigurationError(
            "--slack: the roles come from that account; leave out --role and --service"
        )
    if caller.account and not _ACCOUNT.fullmatch(caller.account):
        raise ConfigurationError("--slack: a Slack user id, such as U0123 or T0123/U0123")
    if unknown := sorted(caller.roles - set(settings.roles)):
        raise ConfigurationError(f"--role: {unknown[0]!r} is not defined; add [roles.{unknown[0]}]")


def _lives(text: str) -> timedelta | None:
    if not text:
        return None
    try:
        found = duration(text)
    except ValueError as error:
        raise ConfigurationError(f"--expires: {error}") from error
    if not isinstance(found, timedelta) or not timedelta(0) < found <= LONGEST:
        raise ConfigurationError(f"--expires: more than zero and at most {LONGEST.days}d")
    return found


def _row(entry: TokenEntry) -> tuple[str, ...]:
    caller = entry.caller
    told = f"Slack {caller.account}" if caller.account else ", ".join(sorted(caller.roles))
    used = f"used {entry.last_used_at:%Y-%m-%d %H:%M} UTC" if entry.last_used_at else "never used"
    return (entry.id, caller.kind.value, caller.name, told or "no role", _state(entry), used)


def _state(entry: TokenEntry) -> str:
    if entry.revoked_at:
        return f"revoked {entry.revoked_at:%Y-%m-%d}"
    if entry.expires_at is None:
        return "live"
    return f"{'until' if entry.is_live else 'expired'} {entry.expires_at:%Y-%m-%d %H:%M} UTC"


def _entry_json(entry: TokenEntry) -> JsonValue:
    caller = entry.caller
    return {
        "id": entry.id,
        "caller": caller.user,
        "kind": caller.kind.value,
        "name": caller.name,
        "roles": [*sorted(caller.roles)],
        "slack": caller.account,
        "created_at": entry.created_at.isoformat(),
        "expires_at": _at(entry.expires_at),
        "revoked_at": _at(entry.revoked_at),
        "last_used_at": _at(entry.last_used_at),
        "live": entry.is_live,
    }


def _at(instant: datetime | None) -> str | None:
    return instant.isoformat() if instant else None
