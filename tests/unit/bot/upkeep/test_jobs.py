"""The clock's jobs: at once, again and again, and none stops another or itself."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat

import pytest
from structlog.testing import capture_logs

from bot.upkeep import jobs
from bot.upkeep.jobs import Job


def uncounted(_name: str) -> None:
    """Failures are not looked at."""


class Ran:
    """Jobs that count, and what to wait for."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        self.again = asyncio.Event()

    async def well(self) -> None:
        self.count["well"] += 1
        if self.count["well"] >= 3:
            self.again.set()

    async def badly(self) -> None:
        self.count["badly"] += 1
        raise ValueError("a bug in a job")


async def test_every_job_runs_once_at_first_and_in_order() -> None:
    ran: list[str] = []

    async def first() -> None:
        ran.append("first")

    async def second() -> None:
        ran.append("second")

    async with jobs.running({"a": Job(60.0, first), "b": Job(60.0, second)}, uncounted):
        assert ran == ["first", "second"]


async def test_a_failing_job_runs_again_and_stops_no_other() -> None:
    ran = Ran()
    async with jobs.running({"bad": Job(0.01, ran.badly), "good": Job(0.01, ran.well)}, uncounted):
        async with asyncio.timeout(5):
            await ran.again.wait()

    assert ran.count["badly"] >= 2


async def test_a_slow_job_never_runs_twice_at_once() -> None:
    running, most, rounds = 0, 0, 0
    enough = asyncio.Event()

    async def slow() -> None:
        nonlocal running, most, rounds
        running, rounds = running + 1, rounds + 1
        most = max(most, running)
        await asyncio.sleep(0.03)
        running -= 1
        if rounds >= 3:
            enough.set()

    async with jobs.running({"slow": Job(0.01, slow)}, uncounted), asyncio.timeout(5):
        await enough.wait()

    assert most == 1


async def test_a_run_that_is_due_during_a_run_is_skipped() -> None:
    begun: list[float] = []
    enough = asyncio.Event()
    now = asyncio.get_running_loop().time

    async def slow() -> None:
        begun.append(now())
        await asyncio.sleep(0.0 if len(begun) != 2 else 0.25)
        if len(begun) >= 4:
            enough.set()

    async with jobs.running({"slow": Job(0.1, slow)}, uncounted), asyncio.timeout(5):
        start = now()
        await enough.wait()

    assert [round((at - start) / 0.1) for at in begun[1:]] == [1, 4, 5]


async def test_an_exception_of_the_context_is_raised_unchanged() -> None:
    with pytest.raises(LookupError, match="not there"):
        async with jobs.running({"any": Job(60.0, Ran().well)}, uncounted):
            raise LookupError("not there")


async def test_nothing_runs_after_the_end() -> None:
    ran = Ran()
    async with jobs.running({"good": Job(0.01, ran.well)}, uncounted):
        await ran.again.wait()
    before = ran.count["well"]
    await asyncio.sleep(0.05)

    assert ran.count["well"] == before


@pytest.mark.parametrize("raised", [ValueError, OSError, TimeoutError])
async def test_a_failing_first_run_does_not_stop_the_start(raised: type[Exception]) -> None:
    async def breaks() -> None:
        raise raised("not now")

    async with jobs.running({"bad": Job(60.0, breaks)}, uncounted):
        pass


async def test_a_job_running_at_the_end_ends_without_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun, first = asyncio.Event(), asyncio.Event()
    left: list[str] = []

    async def long() -> None:
        if not first.is_set():
            first.set()
            return
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.append("long")

    async with jobs.running({"long": Job(0.01, long)}, uncounted), asyncio.timeout(5):
        await begun.wait()
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert left == ["long"]
    assert caplog.text == ""


async def test_an_almost_finished_run_is_waited_for_at_the_end() -> None:
    begun, first = asyncio.Event(), asyncio.Event()
    done: list[str] = []

    async def short() -> None:
        if not first.is_set():
            first.set()
            return
        begun.set()
        await asyncio.sleep(0.05)
        done.append("short")

    async with jobs.running({"short": Job(0.01, short)}, uncounted), asyncio.timeout(5):
        await begun.wait()

    assert done == ["short"]


async def test_a_job_with_its_own_first_run_does_not_delay_the_start() -> None:
    ran = asyncio.Event()

    async def later() -> None:
        ran.set()

    async with jobs.running({"later": Job(60.0, later, first_s=0.01)}, uncounted):
        assert not ran.is_set()
        async with asyncio.timeout(5):
            await ran.wait()


async def test_a_run_past_its_deadline_is_cancelled_counted_and_logged() -> None:
    failed: list[str] = []
    left = asyncio.Event()

    async def hangs() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            left.set()

    with capture_logs() as lines:
        async with jobs.running({"hangs": Job(60.0, hangs, deadline_s=0.01)}, failed.append):
            assert left.is_set()

    assert failed == ["hangs"]
    assert [(each["event"], each["job"], each["deadline"]) for each in lines] == [
        ("job_failed", "hangs", True)
    ]


async def test_a_failing_job_is_counted_by_its_name() -> None:
    failed: list[str] = []
    async with jobs.running({"bad": Job(60.0, Ran().badly)}, failed.append):
        pass

    assert failed == ["bad"]


async def test_a_wall_clock_set_back_does_not_stop_the_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs, "CLOCK_CHECK_S", 0.01)
    true = datetime.now(UTC)
    readings: Iterator[datetime] = chain([true, true], repeat(true - timedelta(hours=1)))
    runs, twice = [0], asyncio.Event()

    async def job() -> None:
        runs[0] += 1
        if runs[0] == 2:
            twice.set()

    every = {"job": Job(3600.0, job)}
    with capture_logs() as lines:
        async with jobs.running(every, uncounted, lambda: next(readings)), asyncio.timeout(5):
            await twice.wait()

    assert [each["event"] for each in lines] == ["clock.set_back"]
