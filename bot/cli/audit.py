"""`kortex audit`: verify the audit log, seal it, export it, erase content from it."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path

import click
from pydantic import JsonValue

from bot.app import rules
from bot.app.audit import outside_checkpoints
from bot.app.stores import open_stores
from bot.audit.checkpoint import Checkpoint, checkpoints_in
from bot.audit.verify import Summary
from bot.cli.database import opened
from bot.cli.display import print_json, print_json_line
from bot.cli.exit_codes import FAILED, OK
from bot.cli.invocation import complain, configured, operator
from bot.cli.options import (
    WHEN,
    exactly_one,
    instant,
    json_option,
    jsonl_option,
    person_option,
    reason_option,
    session_option,
)
from bot.cli.sessions import FORMS, configured_or_demo, find_session
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.store.audit_by_hand import erase as erase_rows
from bot.store.audit_by_hand import seal as seal_rows
from bot.store.audit_reading import StoredAuditReader
from bot.store.audit_reading import verify as verify_audit_log
from bot.store.database import Database
from bot.store.person import UnknownWorkspace

PAGE_ROWS = 1_000


@click.group()
def audit() -> None:
    """Verify, seal, export or erase the audit log: everything that was decided."""


@audit.command()
@click.option(
    "--checkpoint",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Checkpoints kept elsewhere: a file, a log, a copied Slack message. They show whether the tail was cut.",
)
@json_option
@configured_or_demo
async def verify(settings: Settings, checkpoint: Path | None, as_json: bool) -> int:
    """Read the whole chain. Exit 1 and name the first bad row, if there is one.

    \b
    Examples:
      kortex audit verify
      kortex audit verify --checkpoint checkpoints.txt
    """
    keys = rules.audit_keys(settings)
    async with AsyncExitStack() as stack:
        audit_log = StoredAuditReader(await opened(settings, stack))
        witnesses = [*(_given(checkpoint) if checkpoint else []), *outside_checkpoints(settings)]
        summary = await verify_audit_log(audit_log, keys, witnesses)
    _print_summary(summary, len(witnesses), as_json=as_json)
    return FAILED if summary.bad else OK


@audit.command()
@click.option(
    "--session",
    default="",
    metavar="SESSION",
    help="The rows of this session: its id, its name (the newest of it), or a link of its thread.",
)
@click.option("--since", type=instant, metavar="WHEN", help=f"Rows from this time: {WHEN}.")
@jsonl_option
@configured
async def export(settings: Settings, session: str, since: datetime | None) -> int:
    """Print rows in order, one JSON object a line. Give --session or --since.

    \b
    Example:
      kortex audit export --since 24h | jq .kind
    """
    exactly_one(session=session, since=since)
    async with AsyncExitStack() as stack:
        database = await opened(settings, stack)
        audit_log = StoredAuditReader(database)
        wanted = await _session(database, audit_log, session) if session else ""
        if wanted is None:
            complain(f"no row belongs to {session!r}; write {FORMS}")
            return FAILED
        after = 0
        while page := await audit_log.entries(
            after=after, session=wanted, since=since, limit=PAGE_ROWS
        ):
            for entry in page:
                print_json_line(entry.as_json())
            after = page[-1].seq
    return OK


async def _session(database: Database, audit_log: StoredAuditReader, wanted: str) -> str | None:
    """Its id. Rows outlive their session, so an id in the audit log is one whether it is stored or not."""
    if await audit_log.entries(session=wanted, limit=1):
        return wanted
    found = await find_session(database, wanted)
    if found is None or not await audit_log.entries(session=found, limit=1):
        return None
    complain(f"the rows of {found}")
    return found


@audit.command()
@session_option
@person_option
@reason_option
@configured
async def erase(settings: Settings, session: str, person: str, reason: str) -> int:
    """Empty the content of rows; the rows and the chain stay. Give --session or --person."""
    exactly_one(session=session, person=person)
    async with AsyncExitStack() as stack:
        stores = await open_stores(settings, stack)
        try:
            count = await erase_rows(
                stores.database, by=operator(), reason=reason, person=person, session=session
            )
        except UnknownWorkspace as error:
            raise ConfigurationError(f"{error}. Nothing was erased") from error
    print(f"erased the content of {count} rows; the rows and the chain stay")
    return OK


@audit.command()
@reason_option
@configured
async def seal(settings: Settings, reason: str) -> int:
    """Accept an invalid audit log in its current state, and record that.

    Use it for an audit log that began without a key, was restored or was tampered with. Stop every Kortex
    first.
    """
    keys = rules.audit_keys(settings)
    if not keys.keyed:
        raise ConfigurationError("audit.key: set it first; a seal without a key proves nothing")
    async with AsyncExitStack() as stack:
        database = await opened(settings, stack)
        found = await verify_audit_log(
            StoredAuditReader(database), keys, outside_checkpoints(settings)
        )
        if found.bad is None:
            print("the audit log is valid: there is nothing to seal")
            return OK
        rows = await seal_rows(database, found, by=operator(), reason=reason)
    print(
        f"sealed rows 1 to {rows} in their current state; earlier changes to them cannot be found"
    )
    return OK


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
        print_json(found)
        return
    if bad:
        print(f"BAD   row {bad.seq}: {bad.reason}")
        return
    print(f"ok    {summary.rows} rows, head {summary.head[:16]}")
    if summary.erased:
        print(f"      {summary.erased} rows erased: only their content is gone")
    if summary.sealed:
        print(
            f"      rows 1 to {summary.sealed} were sealed later by a holder of the key (row {summary.sealed + 1} records the person and the reason)"
        )
    if summary.unsealed:
        print(f"      rows 1 to {summary.unsealed} are older than the chain and not covered by it")
    if summary.unkeyed:
        print(
            f"      {summary.unkeyed} rows have no key: anyone who can write to the database can "
            "forge them"
        )
    if not witnesses:
        print(
            "      without --checkpoint, kept outside this database, missing newest rows would go "
            "unnoticed"
        )
