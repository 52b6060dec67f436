"""What `kortex audit` does: verify the trail, seal it, export it, erase content from it."""

import getpass
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import orjson
from pydantic import JsonValue

from bot.audit.checkpoint import Checkpoint, checkpoints_in
from bot.audit.verify import Summary
from bot.commands.as_it_is import opened
from bot.commands.ending import FAILED, OK
from bot.commands.instant_option import instant_option
from bot.commands.session_option import FORMS, session_option
from bot.commands.verbs import guarded, loaded
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.store.audit_by_hand import erase as erase_rows
from bot.store.audit_by_hand import seal as seal_rows
from bot.store.audit_reading import StoredTrail
from bot.store.audit_reading import verify as verify_trail
from bot.store.database import Database
from bot.store.person import UnknownWorkspace
from bot.wiring import rules
from bot.wiring.stores import open_stores
from bot.wiring.trail import kept_outside

PAGE_ROWS = 1_000


def verify(config: Path, checkpoint: Path | None, *, as_json: bool) -> int:
    """`kortex audit verify`: exit 1 when a row, an erasure or a checkpoint does not hold."""

    async def work(settings: Settings) -> int:
        keys = rules.audit_keys(settings)
        async with AsyncExitStack() as stack:
            trail = StoredTrail(await opened(settings, stack))
            witnesses = [*(_given(checkpoint) if checkpoint else []), *kept_outside(settings)]
            summary = await verify_trail(trail, keys, witnesses)
        _print_summary(summary, len(witnesses), as_json=as_json)
        return FAILED if summary.bad else OK

    return guarded(lambda: work(loaded(config)))


def export(config: Path, session: str, since: str) -> int:
    """`kortex audit export`: one JSON object a line, in order, on standard output."""

    async def work(settings: Settings) -> int:
        start = instant_option("--since", since) if since else None
        async with AsyncExitStack() as stack:
            database = await opened(settings, stack)
            trail = StoredTrail(database)
            wanted = await _session(database, trail, session) if session else ""
            if wanted is None:
                print(f"kortex: no row is of {session!r}; write {FORMS}", file=sys.stderr)
                return FAILED
            after = 0
            while page := await trail.entries(
                after=after, session=wanted, since=start, limit=PAGE_ROWS
            ):
                for entry in page:
                    sys.stdout.write(orjson.dumps(entry.as_json()).decode() + "\n")
                after = page[-1].seq
        return OK

    return guarded(lambda: work(loaded(config)))


async def _session(database: Database, trail: StoredTrail, wanted: str) -> str | None:
    """Its id. Rows outlive their session, so an id in the trail is one whether it is stored or not."""
    if await trail.entries(session=wanted, limit=1):
        return wanted
    found = await session_option(database, wanted)
    if found is None or not await trail.entries(session=found, limit=1):
        return None
    print(f"kortex: the rows of {found}", file=sys.stderr)
    return found


def erase(config: Path, person: str, session: str, reason: str) -> int:
    """`kortex audit erase`: content goes, the rows and the chain stay."""

    async def work(settings: Settings) -> int:
        async with AsyncExitStack() as stack:
            stores = await open_stores(settings, stack)
            try:
                count = await erase_rows(
                    stores.database,
                    by=f"cli:{getpass.getuser()}",
                    reason=reason,
                    person=person,
                    session=session,
                )
            except UnknownWorkspace as error:
                raise ConfigurationError(f"{error}. Nothing was erased") from error
        print(f"erased the content of {count} rows; the rows and the chain stay")
        return OK

    return guarded(lambda: work(loaded(config)))


def seal(config: Path, reason: str) -> int:
    """`kortex audit seal`: the trail is taken as it stands, by one row made with the key."""

    async def work(settings: Settings) -> int:
        keys = rules.audit_keys(settings)
        if not keys.keyed:
            raise ConfigurationError("audit.key: set it first; a seal without a key proves nothing")
        async with AsyncExitStack() as stack:
            database = await opened(settings, stack)
            found = await verify_trail(StoredTrail(database), keys, kept_outside(settings))
            if found.bad is None:
                print("the trail holds: there is nothing to seal")
                return OK
            rows = await seal_rows(database, found, by=f"cli:{getpass.getuser()}", reason=reason)
        print(f"sealed rows 1 to {rows} as they stand; what they were before, nothing proves")
        return OK

    return guarded(lambda: work(loaded(config)))


def _given(file: Path) -> Sequence[Checkpoint]:
    try:
        found = checkpoints_in(file.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read ({error.strerror})") from error
    if not found:
        raise ConfigurationError(f"{file}: holds no checkpoint (lines with `kortex-audit/1 ...`)")
    return found


def _print_summary(summary: Summary, witnesses: int, *, as_json: bool) -> None:
    bad = summary.bad
    if as_json:
        found: dict[str, JsonValue] = {
            "ok": bad is None,
            "rows": summary.rows,
            "head": summary.head,
            "first_bad_seq": bad.seq if bad else None,
            "reason": bad.reason if bad else "",
            "erased": summary.erased,
            "unkeyed": summary.unkeyed,
            "unsealed": summary.unsealed,
            "sealed": summary.sealed,
            "checkpoints_given": witnesses,
        }
        sys.stdout.write(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode() + "\n")
        return
    if bad:
        print(f"BAD   row {bad.seq}: {bad.reason}")
        return
    print(f"ok    {summary.rows} rows, head {summary.head[:16]}")
    if summary.erased:
        print(f"      {summary.erased} erased: their content is gone, their place is proved")
    if summary.sealed:
        print(
            f"      rows 1 to {summary.sealed} are as somebody with the key found and sealed them "
            f"(row {summary.sealed + 1} says who and why)"
        )
    if summary.unsealed:
        print(f"      rows 1 to {summary.unsealed} are older than the chain and not covered by it")
    if summary.unkeyed:
        print(
            f"      {summary.unkeyed} rows were chained without a key: "
            "whoever can write the database can forge them"
        )
    if not witnesses:
        print(
            "      no --checkpoint from outside this database was given: "
            "a tail cut together with the stored checkpoints would not show"
        )
