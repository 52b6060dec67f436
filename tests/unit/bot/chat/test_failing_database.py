"""Each call to the database fails once, before or after it took effect: the turn still ends, and its
answer is shown once. A step that failed so runs again, over the objects of its first run."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
import structlog.testing

from bot.engine import journal as journals
from bot.engine.journal import TurnJournal
from bot.ports.failures import StorageUnavailable
from bot.slack.api.web_api import Unreachable
from bot.slack.delivery.outbox import Outbox, Patience
from bot.slack.delivery.scheduler import EditScheduler
from bot.slack.views.surface import SlackSurface
from tests.fakes.scripted_provider import calls, text
from tests.fakes.slack_web import FakeSlackWeb
from tests.fixtures_slack import QUICK, running_beside
from tests.fixtures_turn import ASK, TurnBench, turn_bench

ANSWER = "It takes 41.5 ms."
MOST_CALLS = 200


@dataclass
class Failing:
    """A store that loses one call of all that share its numbers, `lost_before` it or after it."""

    inner: Any
    numbers: Iterator[int]
    lost: int
    is_lost_before: bool

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self.inner, name)

        async def call(*args: Any, **named: Any) -> Any:
            is_lost = next(self.numbers) == self.lost
            if is_lost and self.is_lost_before:
                raise StorageUnavailable("the connection is lost")
            value = await method(*args, **named)
            if is_lost:
                raise StorageUnavailable("the connection is lost")
            return value

        return call


class KeptSteps:
    """The records of a turn's steps."""

    async def keep(self, *_: object) -> bool:
        return True


@pytest.fixture(autouse=True)
def _quick_retries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(journals, "FIRST_WAIT_S", 0.001)
    with structlog.testing.capture_logs():
        yield


@pytest.fixture
async def scheduler() -> AsyncIterator[EditScheduler]:
    async with running_beside(EditScheduler(QUICK)) as running:
        yield running


async def answered(
    slack: FakeSlackWeb, scheduler: EditScheduler, lost: int, *, is_lost_before: bool
) -> tuple[TurnBench, int]:
    """A turn with one lost call; how many calls there were."""
    outbox = Outbox(slack, scheduler, bot_user_id="UBOT")
    surface: Any = SlackSurface(outbox, patience=Patience(failures=2, backoff_s=0.001))
    echo = ("c1", "core__echo", '{"text":"41.5 ms"}')
    bench = turn_bench([calls(echo, say="Looking."), text(ANSWER)], surface=surface)
    numbers = count()
    for store in (bench.sessions, bench.ledger, bench.undelivered):
        store.inner = Failing(store.inner, numbers, lost, is_lost_before)
    steps: Any = Failing(KeptSteps(), numbers, lost, is_lost_before)
    async with asyncio.timeout(30):
        await bench.turns.answer(ASK, TurnJournal(ASK.turn_id, "me", steps))
    return bench, next(numbers)


@pytest.mark.parametrize("is_lost_before", [True, False], ids=["before", "after"])
async def test_a_lost_call_to_the_database_loses_no_answer(
    scheduler: EditScheduler, is_lost_before: bool
) -> None:
    lost = total = 0
    while lost <= total:
        slack = FakeSlackWeb()
        _, total = await answered(slack, scheduler, lost, is_lost_before=is_lost_before)
        assert [ANSWER in each for each in slack.texts()] == [True], f"call {lost}"
        lost += 1
    assert 5 < lost < MOST_CALLS


@pytest.mark.parametrize("faults", [3, 100])
@pytest.mark.parametrize("method", ["chat.update", "chat.postMessage", "conversations.replies"])
@pytest.mark.parametrize("is_lost_before", [True, False], ids=["before", "after"])
async def test_an_answer_that_slack_and_the_database_refuse_is_kept(
    scheduler: EditScheduler, method: str, faults: int, is_lost_before: bool
) -> None:
    lost = total = 0
    while lost <= total:
        slack = FakeSlackWeb()
        slack.faults[method].extend([Unreachable(method, "cut")] * faults)
        bench, total = await answered(slack, scheduler, lost, is_lost_before=is_lost_before)
        shown = [each for each in slack.texts() if ANSWER in each]
        assert len(shown) + len(bench.undelivered.inner.inner.rows) == 1, f"call {lost}"
        lost += 1
    assert 5 < lost < MOST_CALLS
