"""What `kortex token` does: make, show and revoke the tokens of callers over HTTP."""

import getpass
import re
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import orjson
from pydantic import JsonValue

from bot.commands.ending import FAILED, OK
from bot.commands.verbs import guarded, loaded
from bot.domain.callers import CallerKind, KnownCaller, TokenEntry, caller_id
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.settings.section import LONGEST, duration
from bot.store.callers import CallerDiffers
from bot.wiring.stores import open_stores

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
# https://docs.slack.dev/reference/objects/user-object: U or W, and T of a workspace.
_ACCOUNT: Final = re.compile(r"(?:T[A-Z0-9]{1,30}/)?[UW][A-Z0-9]{1,30}")


@dataclass(frozen=True, slots=True)
class Wanted:
    """As it was typed."""

    name: str
    is_service: bool
    roles: tuple[str, ...]
    account: str
    expires: str


def create(config: Path, wanted: Wanted, *, as_json: bool) -> int:
    """`kortex token create`."""

    async def work(settings: Settings) -> int:
        caller, lives = _caller(wanted, settings), _lives(wanted.expires)
        async with AsyncExitStack() as stack:
            stores = await open_stores(settings, stack)
            try:
                made = await stores.callers.create(caller, lives, _by())
            except CallerDiffers as error:
                raise ConfigurationError(str(error)) from error
        if as_json:
            _out({"id": made.id, "token": made.token, "caller": caller.user})
            return OK
        print(made.token)
        print(
            f"This is {caller.name}'s, as {made.id}; it is not shown again. Callers send it as "
            "`Authorization: Bearer ...`.",
            file=sys.stderr,
        )
        return OK

    return guarded(lambda: work(loaded(config)))


def show_all(config: Path, *, as_json: bool) -> int:
    """`kortex token list`."""

    async def work(settings: Settings) -> int:
        async with AsyncExitStack() as stack:
            found = await (await open_stores(settings, stack)).callers.tokens()
        if as_json:
            _out([_entry_json(each) for each in found])
            return OK
        for each in found:
            print(_line(each))
        if not found:
            print("There is no token yet: kortex token create NAME")
        return OK

    return guarded(lambda: work(loaded(config)))


def revoke(config: Path, token: str) -> int:
    """`kortex token revoke`: exit 1 when there is no such live token."""

    async def work(settings: Settings) -> int:
        async with AsyncExitStack() as stack:
            done = await (await open_stores(settings, stack)).callers.revoke(token, _by())
        if not done:
            print("kortex: no live token has this id; see `kortex token list`", file=sys.stderr)
            return FAILED
        print(f"{token} is refused from now on")
        return OK

    return guarded(lambda: work(loaded(config)))


def _caller(wanted: Wanted, settings: Settings) -> KnownCaller:
    if not _NAME.fullmatch(wanted.name):
        raise ConfigurationError(
            "NAME: 1 to 64 of a-z, 0-9, '.', '_' and '-', beginning with a letter or digit"
        )
    if wanted.account and (wanted.is_service or wanted.roles):
        raise ConfigurationError(
            "--slack: a person's roles are then those of that account; leave out --role and --service"
        )
    if wanted.account and not _ACCOUNT.fullmatch(wanted.account):
        raise ConfigurationError("--slack: a Slack user id, such as U0123 or T0123/U0123")
    if unknown := sorted(set(wanted.roles) - set(settings.roles)):
        raise ConfigurationError(f"--role: {unknown[0]!r} is not defined; add [roles.{unknown[0]}]")
    kind = CallerKind.SERVICE if wanted.is_service else CallerKind.PERSON
    user = caller_id(kind, wanted.name)
    return KnownCaller(user, kind, wanted.name, frozenset(wanted.roles), wanted.account)


def _lives(text: str) -> timedelta | None:
    if not text:
        return None
    try:
        found = duration(text)
    except ValueError as error:
        raise ConfigurationError(f"--expires: {error}") from error
    if not isinstance(found, timedelta) or not timedelta(0) < found <= LONGEST:
        raise ConfigurationError(f"--expires: more than nothing, and at most {LONGEST.days}d")
    return found


def _line(entry: TokenEntry) -> str:
    caller = entry.caller
    told = f"Slack {caller.account}" if caller.account else ", ".join(sorted(caller.roles))
    used = f"used {entry.last_used_at:%Y-%m-%d %H:%M}Z" if entry.last_used_at else "never used"
    words = (caller.kind.value, caller.name, told or "no role", _state(entry), used)
    return f"{entry.id}  {'  '.join(words)}"


def _state(entry: TokenEntry) -> str:
    if entry.revoked_at:
        return f"revoked {entry.revoked_at:%Y-%m-%d}"
    if entry.expires_at is None:
        return "live"
    return f"{'until' if entry.is_live else 'expired'} {entry.expires_at:%Y-%m-%d %H:%M}Z"


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


def _by() -> str:
    return f"cli:{getpass.getuser()}"


def _out(value: JsonValue) -> None:
    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n")
