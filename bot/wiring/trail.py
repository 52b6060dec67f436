"""Does the audit trail hold? Asked before anything is written after it. Part of the composition root."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from bot.audit.chain import AuditKeys
from bot.audit.checkpoint import Checkpoint, checkpoints_in
from bot.audit.verify import Summary
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.store.audit_reading import StoredTrail, verify, verify_end
from bot.store.database import Database
from bot.wiring import rules

TAIL_BYTES = 65_536  # of the checkpoint file: some 400 checkpoints, of the newest rows


async def check_trail(settings: Settings, trail: StoredTrail, keys: AuditKeys) -> None:
    """With a key, a trail whose end does not hold is never continued, nor is a keyed one without it.

    Raises ConfigurationError, StorageUnavailable.
    """
    if not keys.keyed:
        newest = await trail.newest()
        if newest is not None and newest.key_id:
            raise ConfigurationError(
                f"audit.key: the audit trail is sealed with the key {newest.key_id!r}, and none is "
                "configured. Set [audit] key and key_id (KORTEX_AUDIT_KEY); nothing was started."
            )
        return
    witnesses = await asyncio.to_thread(kept_outside, settings)
    bad = (await verify_end(trail, keys, witnesses)).bad
    if bad is not None:
        raise ConfigurationError(
            f"audit: the trail does not hold at row {bad.seq}: {bad.reason}. Nothing was started. "
            "Keep a copy of the database and see `kortex audit verify`; `kortex audit seal` takes "
            "the trail as it stands, on your word."
        )


async def verified(settings: Settings) -> Summary | None:
    """The whole trail, as `kortex audit verify` reads it; nothing for a database without tables.

    Raises ConfigurationError, StorageUnavailable.
    """
    keys = rules.audit_keys(settings)
    try:
        database = await Database.open(settings.database.url.get_secret_value())
    except ValueError as error:
        raise ConfigurationError(f"database.url: {error}") from error
    try:
        if await database.schema_head() is None:
            return None
        witnesses = await asyncio.to_thread(kept_outside, settings)
        return await verify(StoredTrail(database), keys, witnesses)
    finally:
        await database.close()


def kept_outside(settings: Settings) -> Sequence[Checkpoint]:
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
