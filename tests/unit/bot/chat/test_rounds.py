"""One round: failover before anything was shown, honesty after, and a stop that cuts in."""

import asyncio

import pytest

from adapters.llm.messages import CompleteRequest, ErrorChunk, ErrorKind, StopReason, TextChunk
from bot.chat.rounds import BEHIND_S, Rounds
from bot.chat.stopping import Signal
from bot.domain.turn_events import Notice, TextDelta, TurnEvent
from tests.fakes.scripted_provider import PAID, ScriptedProvider, text
from tests.fixtures_rounds import unlimited

REQUEST = CompleteRequest(system="s", messages=())
DOWN = [ErrorChunk(ErrorKind.AUTH, "401 unauthorized")]


def _texts(events: list[TurnEvent]) -> str:
    return "".join(e.text for e in events if isinstance(e, TextDelta))


async def test_the_default_provider_answers() -> None:
    events: list[TurnEvent] = []
    first, second = ScriptedProvider([text("all ", "well")]), ScriptedProvider([text("no")], "b")

    record = await Rounds([first, second]).run(
        REQUEST, 1, events.append, Signal(), budget=unlimited()
    )

    assert (record.provider, record.text, _texts(events)) == ("scripted", "all well", "all well")
    assert second.requests == []


@pytest.mark.parametrize("kind", sorted(set(ErrorKind)))
async def test_a_failure_before_any_text_fails_over_and_says_so(
    kind: ErrorKind,
) -> None:
    events: list[TurnEvent] = []
    failing = ScriptedProvider([[ErrorChunk(kind, "went wrong", retry_after_s=0.0)]], "a")
    backup = ScriptedProvider([text("from backup")], "b")

    record = await Rounds([failing, backup]).run(
        REQUEST, 1, events.append, Signal(), budget=unlimited()
    )

    assert record.provider == "b"
    assert record.notices == ("a: went wrong",)
    assert Notice("a: went wrong") in events


async def test_a_failure_after_text_ends_the_round_with_that_text() -> None:
    failing = ScriptedProvider([[TextChunk("half an"), ErrorChunk(ErrorKind.CUT, "cut")]], "a")
    backup = ScriptedProvider([text("never")], "b")

    record = await Rounds([failing, backup]).run(
        REQUEST, 1, lambda _: None, Signal(), budget=unlimited()
    )

    assert (record.text, record.error, record.stop_reason) == (
        "half an",
        ErrorKind.CUT,
        StopReason.ERROR,
    )
    assert backup.requests == []


async def test_a_rate_limited_provider_is_skipped_until_it_may_be_asked_again() -> None:
    limited = ScriptedProvider(
        [[ErrorChunk(ErrorKind.RATE_LIMITED, "429", retry_after_s=60.0)]], "a"
    )
    backup = ScriptedProvider([text("one"), text("two")], "b")
    rounds = Rounds([limited, backup])

    await rounds.run(REQUEST, 1, lambda _: None, Signal(), budget=unlimited())
    await rounds.run(REQUEST, 2, lambda _: None, Signal(), budget=unlimited())

    assert len(limited.requests) == 1
    assert rounds.circuit("a").wait_s > 50


async def test_a_brief_overload_is_retried_once_before_the_failover() -> None:
    busy = ScriptedProvider(
        [[ErrorChunk(ErrorKind.OVERLOADED, "529", retry_after_s=0.001)], text("fine now")], "a"
    )

    record = await Rounds([busy]).run(REQUEST, 1, lambda _: None, Signal(), budget=unlimited())

    assert (record.text, len(busy.requests)) == ("fine now", 2)


async def test_a_short_rate_limit_is_waited_for() -> None:
    limited = ScriptedProvider(
        [[ErrorChunk(ErrorKind.RATE_LIMITED, "429", retry_after_s=0.001)], text("now")], "a"
    )
    backup = ScriptedProvider([text("never")], "b")

    record = await Rounds([limited, backup]).run(
        REQUEST, 1, lambda _: None, Signal(), budget=unlimited()
    )

    assert (record.provider, record.text, backup.requests) == ("a", "now", [])


@pytest.mark.parametrize(("says", "requests"), [(True, 2), (False, 1)])
async def test_the_backends_retry_hint_overrides_its_status(says: bool, requests: int) -> None:
    end = ErrorChunk(
        ErrorKind.BAD_REQUEST if says else ErrorKind.OVERLOADED, "e", 0.001, should_retry=says
    )
    asked = ScriptedProvider([[end], text("x")], "a")

    await Rounds([asked]).run(REQUEST, 1, lambda _: None, Signal(), budget=unlimited())

    assert len(asked.requests) == requests


async def test_a_refused_key_is_not_retried_every_round() -> None:
    locked_out = ScriptedProvider([DOWN, DOWN], "a")
    backup = ScriptedProvider([text("one"), text("two")], "b")
    rounds = Rounds([locked_out, backup])

    await rounds.run(REQUEST, 1, lambda _: None, Signal(), budget=unlimited())
    second = await rounds.run(REQUEST, 2, lambda _: None, Signal(), budget=unlimited())

    assert len(locked_out.requests) == 1
    assert second.notices == ("a: key refused, not asked for 300 s",)


@pytest.mark.parametrize(
    ("end", "answered"),
    [
        (ErrorChunk(ErrorKind.AUTH, "401"), True),
        (ErrorChunk(ErrorKind.QUOTA, "spent"), True),
        (ErrorChunk(ErrorKind.RATE_LIMITED, "429"), False),
        (ErrorChunk(ErrorKind.OVERLOADED, "503", retry_after_s=60.0), False),
    ],
)
async def test_the_last_provider_is_asked_unless_it_named_a_time(
    end: ErrorChunk, answered: bool
) -> None:
    only = ScriptedProvider([[end], text("mended")], "a")
    rounds = Rounds([only])

    await rounds.run(REQUEST, 1, lambda _: None, Signal(), budget=unlimited())
    again = await rounds.run(REQUEST, 2, lambda _: None, Signal(), budget=unlimited())

    assert (again.text == "mended") is answered
    assert any("not asked for" in notice for notice in again.notices)


async def test_an_unavailable_provider_is_skipped_and_named() -> None:
    absent = ScriptedProvider([text("never")], "a", unavailable_reason="no API key")
    backup = ScriptedProvider([text("here")], "b")

    record = await Rounds([absent, backup]).run(
        REQUEST, 1, lambda _: None, Signal(), budget=unlimited()
    )

    assert (record.provider, record.notices) == ("b", ("a: no API key",))
    assert absent.requests == []


async def test_when_no_provider_answers_the_record_says_why() -> None:
    record = await Rounds([ScriptedProvider([DOWN], "a")]).run(
        REQUEST, 1, lambda _: None, Signal(), budget=unlimited()
    )

    assert (record.provider, record.error, record.error_message) == (
        "",
        ErrorKind.AUTH,
        "401 unauthorized",
    )


async def test_a_turn_stays_with_the_provider_that_answered_before() -> None:
    first, second = ScriptedProvider([text("a")], "a"), ScriptedProvider([text("b")], "b")

    record = await Rounds([first, second]).run(
        REQUEST, 2, lambda _: None, Signal(), budget=unlimited(), prefer="b"
    )

    assert record.provider == "b"


async def test_a_stop_ends_the_round_keeps_the_text_and_closes_the_stream() -> None:
    stop = Signal()
    slow = ScriptedProvider([text("so far")], hold=asyncio.Event())
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        running = group.create_task(
            Rounds([slow]).run(REQUEST, 1, lambda _: None, stop, budget=unlimited())
        )
        await slow.holding.wait()
        stop.set()

    record = running.result()
    assert (record.stopped, record.text, slow.cancelled) == (True, "so far", 1)


async def test_cost_is_counted_in_whole_micro_dollars_and_unknown_is_not_zero() -> None:
    paid = ScriptedProvider([text("x")], price=PAID)
    unknown = ScriptedProvider([text("x")], price=None)

    priced = await Rounds([paid]).run(REQUEST, 1, lambda _: None, Signal(), budget=unlimited())
    unpriced = await Rounds([unknown]).run(REQUEST, 1, lambda _: None, Signal(), budget=unlimited())

    assert priced.cost_usd_micros == 100 * 3 + 10 * 15
    assert unpriced.cost_usd_micros is None


async def test_a_stop_during_a_retry_wait_ends_at_once() -> None:
    stop, told = Signal(), asyncio.Event()
    busy = ScriptedProvider([[ErrorChunk(ErrorKind.OVERLOADED, "529", retry_after_s=8.0)]])

    class Told(ScriptedProvider):
        async def stream(self, request):  # type: ignore[no-untyped-def]
            async for chunk in busy.stream(request):
                told.set()
                yield chunk

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        running = group.create_task(
            Rounds([Told([])]).run(REQUEST, 1, lambda _: None, stop, budget=unlimited())
        )
        await told.wait()
        stop.set()

    assert running.result().stopped
    assert len(busy.requests) == 1


async def test_a_stream_without_an_end_is_a_cut_and_not_an_answer() -> None:
    record = await Rounds([ScriptedProvider([[TextChunk("half")]])]).run(
        REQUEST, 1, lambda _: None, Signal(), budget=unlimited()
    )

    assert (record.text, record.error) == ("half", ErrorKind.CUT)


REQUIRED = CompleteRequest(system="s", messages=(), require_tool=True)
REFUSED = [ErrorChunk(ErrorKind.BAD_REQUEST, "tool_choice is not supported", status=400)]


async def test_a_model_that_refuses_forced_tools_is_asked_without_and_remembered() -> None:
    provider = ScriptedProvider([REFUSED, text("one"), text("two")])
    rounds = Rounds([provider])

    first = await rounds.run(REQUIRED, 1, lambda _: None, Signal(), budget=unlimited())
    second = await rounds.run(REQUIRED, 1, lambda _: None, Signal(), budget=unlimited())

    assert (first.text, second.text, first.notices) == ("one", "two", ())
    assert [r.require_tool for r in provider.requests] == [True, False, False]


async def test_a_refusal_for_another_reason_is_not_attributed_to_forced_tools() -> None:
    provider = ScriptedProvider([REFUSED, REFUSED, text("one")])
    rounds = Rounds([provider])

    failed = await rounds.run(REQUIRED, 1, lambda _: None, Signal(), budget=unlimited())
    await rounds.run(REQUIRED, 1, lambda _: None, Signal(), budget=unlimited())

    assert failed.error is ErrorKind.BAD_REQUEST
    assert [r.require_tool for r in provider.requests] == [True, False, True]


async def test_a_request_without_a_required_tool_is_refused_once() -> None:
    provider = ScriptedProvider([REFUSED])

    await Rounds([provider]).run(REQUEST, 1, lambda _: None, Signal(), budget=unlimited())

    assert len(provider.requests) == 1


async def test_a_round_is_cut_only_by_its_providers_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, started = asyncio.get_running_loop(), asyncio.get_running_loop().time()
    slow = ScriptedProvider([text("late")], round_limit_s=1_800.0, hold=asyncio.Event())
    asking = asyncio.create_task(
        Rounds([slow]).run(REQUEST, 1, lambda _: None, Signal(), budget=unlimited())
    )
    await slow.holding.wait()

    monkeypatch.setattr(loop, "time", lambda: started + 1_799.0)
    await turns_of_the_loop()
    in_time = asking.done()
    monkeypatch.setattr(loop, "time", lambda: started + 1_800.0 + BEHIND_S + 1.0)
    record = await asking

    assert not in_time
    assert record.error is ErrorKind.TIMEOUT
    assert record.error_message == "no complete answer after 1830 s"


async def turns_of_the_loop() -> None:
    """Let everything run that is due."""
    for _ in range(20):
        await asyncio.sleep(0)
