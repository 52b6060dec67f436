"""The audit log: whether it holds, and where its checkpoints and events go."""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from adapters.audit.http import AuditHttp
from bot.app import rules
from bot.app.http_access import route_of
from bot.audit.chain import AuditKeys
from bot.audit.checkpoint import Checkpoint, checkpoints_in
from bot.audit.checkpointing import Checkpoints, Publisher
from bot.audit.feed import FAR_ROWS, LOG_ROWS, STALLED_S, EventFeed, Sink, to_log
from bot.audit.share import rest_s
from bot.domain.audit import AuditEntry, AuditEvent, AuditKind
from bot.domain.ids import ChannelId, MessageTs, Place, TeamId
from bot.ports.audit_log import AuditLog
from bot.ports.failures import StorageUnavailable
from bot.ports.platform import ChatSurface
from bot.settings.access import AccessSettings
from bot.settings.model import AuditSettings, Settings
from bot.settings.reading import ConfigurationError, needing_extra
from bot.store.audit_reading import StoredAuditReader, verify, verify_end
from bot.store.audit_sinks import SinkCursors
from bot.store.database import Database
from bot.store.levels import Behind, StoredLevels
from bot.upkeep.jobs import Job

if TYPE_CHECKING:
    from adapters.audit.nats import AuditNats


log = structlog.get_logger(__name__)

TAIL_BYTES = 65_536  # of the checkpoint file: some 400 checkpoints, of the newest rows
CHECKPOINT_TICK_S = 5.0
EVENTS_TICK_S = 2.0  # how late an event may be in the log
FULL_VERIFICATION_S = 24 * 3600.0
SOON_S = 30.0  # a start reads the end of the audit log; all of it is read once answers go out
GENTLE_ROWS = 500  # judged at a stretch on the loop: some 4 ms
LAST_CHECKPOINT_S = 3.0
_CALLS = frozenset({AuditKind.MODEL_CALL, AuditKind.TOOL_CALL})


async def check_audit_log(
    settings: Settings, audit_log: StoredAuditReader, keys: AuditKeys
) -> None:
    """Refuse a broken audit log.

    With a key, an audit log whose end does not verify is never continued, nor is a keyed one without its
    key. Raises ConfigurationError, StorageUnavailable.
    """
    if not keys.keyed:
        newest = await audit_log.newest()
        if newest is not None and newest.key_id:
            raise ConfigurationError(
                f"audit.key: the audit log is sealed with the key {newest.key_id!r}, and none is "
                "configured. Set [audit] key and key_id (KORTEX_AUDIT_KEY); nothing was started."
            )
        return
    witnesses = await asyncio.to_thread(outside_checkpoints, settings)
    bad = (await verify_end(audit_log, keys, witnesses)).bad
    if bad is not None:
        raise ConfigurationError(
            f"audit: the audit log is not valid at row {bad.seq}: {bad.reason}. Nothing was started. "
            "Keep a copy of the database and run `kortex audit verify`. `kortex audit seal` "
            "accepts the audit log in its current state, on your responsibility."
        )


def outside_checkpoints(settings: Settings) -> Sequence[Checkpoint]:
    """The last checkpoints of `[audit] checkpoint_file`, which no database write reaches."""
    path = settings.audit.checkpoint_file
    if not path:
        return []
    try:
        with Path(path).open("rb") as file:
            file.seek(0, 2)
            file.seek(max(file.tell() - TAIL_BYTES, 0))
            return checkpoints_in(file.read().decode("utf-8", "replace"))
    except FileNotFoundError:  # none was made yet
        return []
    except OSError as error:
        raise ConfigurationError(
            f"audit.checkpoint_file: {path} cannot be read ({error.strerror})"
        ) from error


def audit_jobs(
    settings: Settings, database: Database, surface: ChatSurface, team: str, stack: AsyncExitStack
) -> dict[str, Job]:
    """What runs beside the bot, each every so many seconds; the stack's end is the last checkpoint.

    Reads certificates. Raises ConfigurationError.
    """
    if not rules.audit_keys(settings).keyed:
        log.warning(
            "audit.without_key", what="anyone who can write to the database can forge the audit log"
        )
    checkpoints = make_checkpoints(settings, database, surface, team, stack)
    feed = make_feed(settings, database, stack)
    stack.push_async_callback(_last_word, checkpoints)
    return {
        "audit-checkpoints": Job(CHECKPOINT_TICK_S, checkpoints.run),
        "audit-events": Job(EVENTS_TICK_S, feed.run),
        "audit-whole": Job(
            FULL_VERIFICATION_S,
            FullVerification(settings, database).run,
            deadline_s=FULL_VERIFICATION_S / 2,
            first_s=SOON_S,
        ),
    }


class FullVerification:
    """Verifies the whole audit log, a page at a time: about a million rows in some minutes."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings = settings
        self._audit_log = StoredAuditReader(database)

    async def run(self) -> None:
        """Verify once; a bad row is logged as an error. Raises StorageUnavailable."""
        witnesses = await asyncio.to_thread(outside_checkpoints, self._settings)
        keys = rules.audit_keys(self._settings)
        found = await verify(self._audit_log, keys, witnesses, page_rows=GENTLE_ROWS, rest=_rest)
        if found.bad is not None:
            log.error("audit.log.invalid", row=found.bad.seq, reason=found.bad.reason)


async def _rest(took_s: float) -> None:
    await asyncio.sleep(rest_s(took_s))


async def _last_word(checkpoints: Checkpoints) -> None:
    try:
        async with asyncio.timeout(LAST_CHECKPOINT_S):
            await checkpoints.close()
    except (StorageUnavailable, TimeoutError) as error:
        log.error("audit.checkpoint.failed", why=str(error) or "no answer in time")


def make_feed(settings: Settings, database: Database, stack: AsyncExitStack) -> EventFeed:
    """Events to the log and where `[audit] events_*` says. Raises ConfigurationError."""
    sinks = {"log": Sink(to_log, LOG_ROWS)}
    audit = settings.audit
    if audit.events_url:
        http = audit_http("audit.events", audit.events_url, audit.events_route)
        stack.push_async_callback(http.aclose)

        async def to_collector(entries: Sequence[AuditEntry]) -> None:
            await http.send_events([entry.as_json() for entry in entries])

        sinks["http"] = Sink(to_collector)
    if audit.events_nats:
        nats = audit_nats(audit)

        async def to_nats(entries: Sequence[AuditEntry]) -> None:
            await nats.send_events([entry.as_json() for entry in entries])

        sinks["nats"] = Sink(to_nats)
    return EventFeed(StoredAuditReader(database), SinkCursors(database), sinks)


def sinks_of(audit: AuditSettings) -> Sequence[str]:
    more = {"http": audit.events_url, "nats": audit.events_nats}
    return ["log", *(name for name, where in more.items() if where)]


async def sinks_behind(settings: Settings, database: Database) -> list[str]:
    """A line on each sink that is stalled or far behind. Raises StorageUnavailable."""
    found = await StoredLevels(database).behind(sinks_of(settings.audit))
    return [
        _behind_words(name, behind)
        for name, behind in found.items()
        if behind.rows >= FAR_ROWS or behind.seconds >= STALLED_S
    ]


def _behind_words(sink: str, behind: Behind) -> str:
    waited = (
        f"{behind.seconds / 3600:.1f} h" if behind.seconds >= 3600 else f"{behind.seconds:.0f} s"
    )
    return f"{sink} is {behind.rows:,} rows behind, the oldest has waited for {waited}"


def make_checkpoints(
    settings: Settings, database: Database, surface: ChatSurface, team: str, stack: AsyncExitStack
) -> Checkpoints:
    """Checkpoints to every place that `[audit] checkpoint_*` names. Raises ConfigurationError."""
    publishers = _publishers(settings, surface, team, stack)
    keys = rules.audit_keys(settings)
    return Checkpoints(StoredAuditReader(database), keys, publishers)


def _publishers(
    settings: Settings, surface: ChatSurface, team: str, stack: AsyncExitStack
) -> Mapping[str, Publisher]:
    audit = settings.audit
    found: dict[str, Publisher] = {}
    if audit.checkpoint_stdout:
        found["stdout"] = _to_stdout
    if audit.checkpoint_file:
        path = Path(audit.checkpoint_file)
        # A thread of its own: the loop's may be gone when the last checkpoint is written.
        thread = ThreadPoolExecutor(1, "audit-checkpoints")
        stack.callback(thread.shutdown, wait=False)

        async def to_file(checkpoint: Checkpoint) -> None:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(thread, _append, path, checkpoint.line)

        found["file"] = to_file
    if audit.checkpoint_url:
        http = audit_http("audit.checkpoint", audit.checkpoint_url, audit.checkpoint_route)
        stack.push_async_callback(http.aclose)

        async def to_url(checkpoint: Checkpoint) -> None:
            await http.put_checkpoint(checkpoint.size, checkpoint.line)

        found["url"] = to_url
    if audit.checkpoint_channel:
        place = Place(TeamId(team), ChannelId(audit.checkpoint_channel), MessageTs(""))

        async def to_channel(checkpoint: Checkpoint) -> None:
            text = f"Audit checkpoint, keep it: `{checkpoint.line}`"
            await surface.say(place, text, f"audit-checkpoint:{checkpoint.size}")

        found["channel"] = to_channel
    return found


def audit_http(key: str, url: str, access: AccessSettings) -> AuditHttp:
    route = route_of(access, f"{key}_access")
    try:
        return AuditHttp(url, route)
    except ValueError as error:
        raise ConfigurationError(f"{key}_url: {error}") from error


def audit_nats(audit: AuditSettings) -> "AuditNats":
    with needing_extra("nats", "audit.events_nats"):
        from adapters.audit.nats import AuditNats, NatsLogin

    login = NatsLogin(
        audit.events_nats_user,
        audit.events_nats_password.get_secret_value(),
        audit.events_nats_token.get_secret_value(),
    )
    try:
        return AuditNats(
            audit.events_nats,
            audit.events_nats_subject,
            login,
            acknowledged=audit.events_nats_acknowledged,
        )
    except ValueError as error:
        raise ConfigurationError(f"audit.events_nats: {error}") from error


async def _to_stdout(checkpoint: Checkpoint) -> None:
    sys.stdout.write(checkpoint.line + "\n")
    sys.stdout.flush()


def _append(path: Path, line: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())


class DecisionsOnly(AuditLog):
    """Writes no row for a call. Everything that changes or refuses something still gets one."""

    def __init__(self, audit: AuditLog) -> None:
        self._audit = audit

    async def append(self, event: AuditEvent) -> None:
        """Write one row unless it is about a call. Raises StorageUnavailable."""
        if event.kind not in _CALLS:
            await self._audit.append(event)

    async def append_with_step(self, event: AuditEvent) -> None:
        """As `append`, with the record of the current step."""
        if event.kind not in _CALLS:
            await self._audit.append_with_step(event)


def calls_audit(audit: AuditLog, *, every_call: bool) -> AuditLog:
    return audit if every_call else DecisionsOnly(audit)
