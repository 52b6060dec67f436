"""When a checkpoint is due, who publishes it, and that one which could not be published is kept."""

from datetime import UTC, datetime, timedelta

import pytest

from adapters.errors import Unreachable
from bot.audit.checkpoint import AuditLogEnd, Checkpoint
from bot.audit.checkpointing import Checkpoints
from tests.fixtures_audit import KEYS, chain_of

ROWS = chain_of(300)


class Kept:
    """The audit log so far, and the checkpoints of all replicas."""

    def __init__(self) -> None:
        self.size = 0
        self.now = datetime(2026, 11, 21, 12, tzinfo=UTC)
        self.made: list[tuple[int, datetime]] = []

    async def end(self) -> AuditLogEnd:
        newest = ROWS[self.size - 1] if self.size else None
        return AuditLogEnd(newest, self.made[-1] if self.made else None, self.now)

    async def keep_checkpoint(self, checkpoint: Checkpoint) -> bool:
        if checkpoint.size in dict(self.made):
            return False
        self.made.append((checkpoint.size, self.now))
        return True


class Witness:
    """A place checkpoints go to, that may be away."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.away = False

    async def __call__(self, checkpoint: Checkpoint) -> None:
        if self.away:
            raise Unreachable("gone")
        assert checkpoint.is_signed(KEYS)
        self.seen.append(checkpoint.size)


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def witness() -> Witness:
    return Witness()


@pytest.fixture
def checkpoints(kept: Kept, witness: Witness) -> Checkpoints:
    return Checkpoints(kept, KEYS, {"witness": witness})


async def test_an_empty_log_has_no_checkpoint(checkpoints: Checkpoints, witness: Witness) -> None:
    await checkpoints.run()
    await checkpoints.close()
    assert witness.seen == []


@pytest.mark.parametrize(
    ("rows", "minutes", "seen"),
    [(99, 1, [1]), (100, 1, [1, 101]), (1, 5, [1, 2]), (0, 60, [1]), (250, 0, [1, 251])],
)
async def test_a_checkpoint_is_due_after_a_hundred_rows_or_five_minutes(
    checkpoints: Checkpoints, kept: Kept, witness: Witness, rows: int, minutes: int, seen: list[int]
) -> None:
    kept.size = 1
    await checkpoints.run()
    kept.size += rows
    kept.now += timedelta(minutes=minutes)
    await checkpoints.run()
    await checkpoints.run()
    assert witness.seen == seen


async def test_shutdown_covers_the_last_row(
    checkpoints: Checkpoints, kept: Kept, witness: Witness
) -> None:
    kept.size = 1
    await checkpoints.run()
    kept.size = 2
    await checkpoints.close()
    await checkpoints.close()
    assert witness.seen == [1, 2]


async def test_an_unpublished_checkpoint_is_published_later(
    checkpoints: Checkpoints, kept: Kept, witness: Witness
) -> None:
    kept.size, witness.away = 1, True
    await checkpoints.run()
    kept.size += 100
    await checkpoints.run()
    witness.away = False
    await checkpoints.run()
    await checkpoints.run()
    assert witness.seen == [101]


async def test_replicas_publish_each_size_once(kept: Kept, witness: Witness) -> None:
    kept.size = 1
    for _ in range(3):
        await Checkpoints(kept, KEYS, {"witness": witness}).run()
    assert witness.seen == [1]
