"""The clock's jobs: at once, again and again, and none stops another or itself."""

import asyncio
from collections import Counter
from collections.abc import Collection
from functools import partial

import pytest

from bot.upkeep import jobs


async def nothing() -> Collection[str]:
    return ()


NONE = jobs.Prompted(60.0, nothing, {})


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


async def test_every_job_runs_once_before_anything_else_and_in_order() -> None:
    ran: list[str] = []

    async def first() -> None:
        ran.append("first")

    async def second() -> None:
        ran.append("second")

    async with jobs.running({"a": (60.0, first), "b": (60.0, second)}, NONE):
        assert ran == ["first", "second"]


async def test_a_job_that_breaks_runs_again_and_stops_no_other() -> None:
    ran = Ran()
    async with jobs.running({"bad": (0.01, ran.badly), "good": (0.01, ran.well)}, NONE):
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

    async with jobs.running({"slow": (0.01, slow)}, NONE), asyncio.timeout(5):
        await enough.wait()

    assert most == 1


async def test_what_passes_while_a_job_runs_is_left_out() -> None:
    begun: list[float] = []
    enough = asyncio.Event()
    now = asyncio.get_running_loop().time

    async def slow() -> None:
        begun.append(now())
        await asyncio.sleep(0.0 if len(begun) != 2 else 0.25)
        if len(begun) >= 4:
            enough.set()

    async with jobs.running({"slow": (0.1, slow)}, NONE), asyncio.timeout(5):
        start = now()
        await enough.wait()

    assert [round((at - start) / 0.1) for at in begun[1:]] == [1, 4, 5]


async def test_what_the_context_raises_stays_as_it_is() -> None:
    with pytest.raises(LookupError, match="not there"):
        async with jobs.running({"any": (60.0, Ran().well)}, NONE):
            raise LookupError("not there")


async def test_nothing_runs_after_the_end() -> None:
    ran = Ran()
    async with jobs.running({"good": (0.01, ran.well)}, NONE):
        await ran.again.wait()
    before = ran.count["well"]
    await asyncio.sleep(0.05)

    assert ran.count["well"] == before


@pytest.mark.parametrize("raised", [ValueError, OSError, TimeoutError])
async def test_a_first_run_that_breaks_does_not_end_the_start(raised: type[Exception]) -> None:
    async def breaks() -> None:
        raise raised("not now")

    async with jobs.running({"bad": (60.0, breaks)}, NONE):
        pass


async def test_a_job_that_the_end_meets_under_way_ends_without_an_error(
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

    async with jobs.running({"long": (0.01, long)}, NONE), asyncio.timeout(5):
        await begun.wait()
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert left == ["long"]
    assert caplog.text == ""


class Looks:
    """What is due by one look after the other, then nothing; and how often each job ran."""

    def __init__(self, *due: Collection[str] | Exception) -> None:
        self.due = [*due]
        self.ran: Counter[str] = Counter()
        self.over = asyncio.Event()

    async def look(self) -> Collection[str]:
        if not self.due:
            self.over.set()
            return ()
        found = self.due.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def prompted(self, *names: str) -> jobs.Prompted:
        return jobs.Prompted(0.01, self.look, {name: partial(self._run, name) for name in names})

    async def _run(self, name: str) -> None:
        self.ran[name] += 1


async def test_what_is_prompted_runs_at_the_start_and_then_when_it_is_due() -> None:
    looks = Looks((), ("cards",), ("cards", "expiry"))

    async with jobs.running({}, looks.prompted("cards", "expiry", "watches")), asyncio.timeout(5):
        assert looks.ran == {"cards": 1, "expiry": 1, "watches": 1}
        await looks.over.wait()

    assert looks.ran == {"cards": 3, "expiry": 2, "watches": 1}


async def test_a_look_that_breaks_is_looked_again() -> None:
    looks = Looks(ValueError("a bug"), ("cards",))

    async with jobs.running({}, looks.prompted("cards")), asyncio.timeout(5):
        await looks.over.wait()

    assert looks.ran == {"cards": 2}


async def test_one_that_is_slow_keeps_no_other_from_running_and_runs_once_more_itself() -> None:
    begun, go_on, last = asyncio.Event(), asyncio.Event(), asyncio.Event()
    ran: list[str] = []
    looks = Looks(("slow", "other"), ("slow", "other"), ("slow",))

    async def slow() -> None:
        ran.append("slow")
        begun.set()
        if ran.count("slow") == 2:
            await go_on.wait()
        if ran.count("slow") == 3:
            last.set()

    async def other() -> None:
        ran.append("other")

    prompted = jobs.Prompted(0.01, looks.look, {"slow": slow, "other": other})
    async with jobs.running({}, prompted), asyncio.timeout(5):
        await looks.over.wait()
        assert ran.count("slow") == 2
        assert ran.count("other") == 3
        go_on.set()
        await last.wait()
        await asyncio.sleep(0)

    assert ran.count("slow") == 3
