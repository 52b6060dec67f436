"""A database put back from a copy: nothing that was open in it is done a second time."""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from bot.app.start import serving
from bot.app.worker import Times
from bot.cli.main import main
from bot.demo.workspace.seeds import RESPONDER
from bot.store.backup import write_backup
from bot.store.restore_guard import CopyInDoubt
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import QUICK, on_stage
from tests.stage import Asked, Stage, question_of, results

PROPOSAL = {
    "action": "rollback-deploy",
    "product": "checkout",
    "params": {"version": "v2.3.7"},
    "rationale": "p99 rose with the deploy",
}


class Model:
    """Proposes; and one question it answers late."""

    def __init__(self) -> None:
        self.late, self.asked_late = asyncio.Event(), asyncio.Event()

    def __call__(self, request: Recorded) -> Round:
        if "slowly" in question_of(request):
            self.asked_late.set()
            return Round(text=("At last.",), hold=self.late, hold_at=0)
        if results(request):
            return Round(text=("I have proposed it.",))
        another = {**PROPOSAL, "params": {"version": "v2.3.6"}}
        wanted = another if "another" in question_of(request) else PROPOSAL
        return Round(calls=(Call("core__propose_action", wanted),))


pytestmark = pytest.mark.may_block_the_loop


def by_vacuum(database: Path, target: Path) -> None:
    """As `cp` would, of a file that no one writes to."""
    with closing(sqlite3.connect(database)) as source:
        source.execute("VACUUM INTO ?", (str(target),))


async def ended(stage: Stage) -> None:
    await stage.stop_service()
    # The engine takes the loop's threads with it; a new process brings its own.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())


def put_back(stage: Stage, copy: Path) -> None:
    database = stage.folder / "kortex.db"
    for each in (database, stage.folder / "kortex.db-wal", stage.folder / "kortex.db-shm"):
        each.unlink(missing_ok=True)
    copy.rename(database)


def states(stage: Stage) -> list[str]:
    return sorted(state for (state,) in stage.query("SELECT state FROM proposals"))


@pytest.mark.parametrize("make_copy", [write_backup, by_vacuum])
async def test_a_restored_database_repeats_nothing(
    tmp_path: Path, make_copy: Callable[[Path, Path], object]
) -> None:
    model, copy = Model(), tmp_path / "copy.db"
    async with on_stage(tmp_path, model) as stage:
        first, second = await proposed(stage), await proposed(stage, "another")
        slow = await stage.ask("@kortex think slowly", stage.newcomer())
        await model.asked_late.wait()
        await stage.change(  # one that is on its way when the copy is made
            "UPDATE proposals SET state = 'dispatching', decided_by = ? WHERE thread_ts = ?",
            RESPONDER,
            second.thread,
        )
        await asyncio.to_thread(make_copy, tmp_path / "kortex.db", copy)
        model.late.set()
        await stage.press(RESPONDER, await stage.card(first), "proposal:confirm")
        await stage.card(first, "succeeded")
        await stage.note(first, ": succeeded.")
        await stage.answer(slow)
        await ended(stage)
        posted = len(stage.workspace.messages(slow.channel))
        put_back(stage, copy)
        rounds = len(stage.models.requests)

        async with serving(stage.settings, QUICK):
            card = await stage.card(first, "unknown")
            await stage.card(second, "unknown")
            told = await stage.private_reply(
                RESPONDER, stage.press(RESPONDER, card, "proposal:confirm", stale=True)
            )

        assert (stage.effects, states(stage)) == (1, ["unknown", "unknown"])
        assert "unknown" in told
        assert len(stage.models.requests) == rounds
        assert stage.workspace.messages(slow.channel)[posted:] == ()
        assert stage.query("SELECT count(*) FROM turns WHERE state = 'running'") == [(0,)]
        status = "SELECT status FROM workflow_status WHERE workflow_uuid = ?"
        assert stage.query(status, slow.turn_in(stage.workspace)) == [("CANCELLED",)]
        assert stage.query("SELECT count(*) FROM audit WHERE kind = 'database.restored'") == [(1,)]


async def test_a_dispatch_is_recorded_before_it_is_sent(tmp_path: Path) -> None:
    async with on_stage(tmp_path, Model(), times=Times(tick_s=3600.0)) as stage:
        asked = await proposed(stage)
        await stage.press(RESPONDER, await stage.card(asked), "proposal:confirm")
        await stage.card(asked, "succeeded")
        marked = (tmp_path / "kortex.db.seen").read_text().split(" ")
        intent = "SELECT seq, mac FROM audit WHERE kind = 'dispatch.intent'"
        assert stage.query(intent) == [(int(marked[0]), marked[1])]


async def proposed(stage: Stage, what: str = "a") -> Asked:
    asked = await stage.ask(f"@kortex propose {what} way out", stage.newcomer())
    await stage.answer(asked)
    await stage.card(asked)
    return asked


def without_mark(folder: Path) -> None:
    (folder / "kortex.db.seen").unlink()


def with_its_mark(folder: Path) -> None:
    """As an archive of the whole folder restores it: the same bytes in another file."""
    by_vacuum(folder / "kortex.db", folder / "whole")
    for each in folder.glob("kortex.db-*"):
        each.unlink()
    (folder / "whole").rename(folder / "kortex.db")


@pytest.mark.parametrize("move", [without_mark, with_its_mark])
async def test_a_moved_database_needs_confirmation_only_while_actions_are_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], move: Callable[[Path], None]
) -> None:
    async with on_stage(tmp_path, Model()) as stage:
        asked = await proposed(stage)
        await ended(stage)
        await asyncio.to_thread(move, tmp_path)

        with pytest.raises(ExceptionGroup) as refused:
            async with serving(stage.settings, QUICK):
                pass
        assert refused.group_contains(CopyInDoubt, match="1 of its proposals")
        assert states(stage) == ["pending"]

        said = await asyncio.to_thread(kortex, tmp_path, "restored", "--moved")
        async with serving(stage.settings, QUICK):
            await stage.press(RESPONDER, await stage.card(asked), "proposal:confirm")
            await stage.card(asked, "succeeded")
        await asyncio.to_thread(kortex, tmp_path, "backup", str(tmp_path / "whole.db"))

    assert said == 0
    assert (tmp_path / "whole.db").exists()
    assert "continues" in capsys.readouterr().out


def kortex(folder: Path, *arguments: str) -> int:
    """The exit code."""
    config = folder / "kortex.toml"
    config.write_text(f'[database]\nurl = "sqlite+aiosqlite:///{folder}/kortex.db"\n')
    with pytest.raises(SystemExit) as code:
        main([*arguments, "--config", str(config)])
    return int(code.value.code or 0)
