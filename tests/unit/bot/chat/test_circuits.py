"""A provider's circuit: how long it is left alone, who may try, and what closes it again."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from adapters.llm.messages import DoneChunk, ErrorChunk, ErrorKind, StopReason, Usage
from bot.chat.circuits import (
    DEFAULT_COOLDOWN_S,
    FIRST_OPEN_S,
    HOPELESS_S,
    LONGEST_COOLDOWN_S,
    LONGEST_OPEN_S,
    TRIAL_S,
    Circuits,
    CircuitState,
)

DONE = DoneChunk(StopReason.END_TURN, Usage(), "m")
FAILURES = [
    ErrorKind.OVERLOADED,
    ErrorKind.UNREACHABLE,
    ErrorKind.TIMEOUT,
    ErrorKind.CUT,
    ErrorKind.PROTOCOL,
]


AT = datetime(2026, 11, 22, 14, 2, tzinfo=UTC)


class Wall:
    """Each failure a minute after the last, unless time is let pass."""

    def __init__(self) -> None:
        self.now = AT - timedelta(minutes=1)

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def error(kind: ErrorKind, retry_after_s: float | None = None) -> ErrorChunk:
    return ErrorChunk(kind, "went wrong", retry_after_s)


@pytest.mark.parametrize(
    ("end", "wait_s"),
    [
        (error(ErrorKind.RATE_LIMITED, 7.0), 7.0),
        (error(ErrorKind.RATE_LIMITED), DEFAULT_COOLDOWN_S),
        (error(ErrorKind.RATE_LIMITED, 1e9), LONGEST_COOLDOWN_S),
        (error(ErrorKind.OVERLOADED, 7.0), 7.0),
        (error(ErrorKind.OVERLOADED), 0.0),
        (error(ErrorKind.QUOTA), HOPELESS_S),
        (error(ErrorKind.AUTH), HOPELESS_S),
        (error(ErrorKind.CONTEXT_OVERFLOW), 0.0),
        (error(ErrorKind.REFUSED), 0.0),
        (error(ErrorKind.BAD_REQUEST), 0.0),
        (DONE, 0.0),
        (None, 0.0),
    ],
)
def test_the_end_of_a_round_decides_the_wait(
    end: DoneChunk | ErrorChunk | None, wait_s: float
) -> None:
    circuits = Circuits(Clock())
    circuits.heard("a", end)
    assert circuits.of("a").wait_s == wait_s
    assert circuits.of("b").wait_s == 0.0


@pytest.mark.parametrize("kind", FAILURES)
def test_consecutive_failures_open_the_circuit_for_longer(kind: ErrorKind) -> None:
    circuits = Circuits(Clock())
    waits = []
    for _ in range(9):
        circuits.heard("a", error(kind))
        waits.append(circuits.of("a").wait_s)
    assert waits == [0, 0, FIRST_OPEN_S, 30, 60, 120, 240, LONGEST_OPEN_S, LONGEST_OPEN_S]


def test_a_success_between_failures_resets_the_count() -> None:
    circuits = Circuits(Clock())
    ends = (error(ErrorKind.CUT), error(ErrorKind.CUT), DONE, error(ErrorKind.CUT))
    for end in ends:
        circuits.heard("a", end)
    assert (circuits.of("a").state, circuits.of("a").failures) == (CircuitState.CLOSED, 1)


def test_after_the_wait_one_round_tries_and_the_others_wait() -> None:
    clock = Clock()
    circuits = Circuits(clock)
    circuits.heard("a", error(ErrorKind.RATE_LIMITED, 5.0))
    clock.now += 5.0
    assert circuits.of("a").state is CircuitState.TRYING
    circuits.asked("a")
    assert circuits.of("a").wait_s == TRIAL_S
    circuits.heard("a", DONE)
    assert circuits.of("a").state is CircuitState.CLOSED


def test_an_abandoned_trial_does_not_block_the_circuit() -> None:
    clock = Clock()
    circuits = Circuits(clock)
    circuits.heard("a", error(ErrorKind.RATE_LIMITED, 5.0))
    clock.now += 5.0
    circuits.asked("a")
    clock.now += TRIAL_S
    assert circuits.of("a").wait_s == 0.0


def test_a_refused_request_shows_that_the_provider_is_back() -> None:
    circuits = Circuits(Clock())
    for kind in [ErrorKind.CUT, ErrorKind.CUT, ErrorKind.CONTEXT_OVERFLOW]:
        circuits.heard("a", error(kind))
    assert circuits.of("a").failures == 0


def test_the_circuit_gives_its_reason() -> None:
    circuits = Circuits(Clock())
    circuits.heard("a", error(ErrorKind.QUOTA))
    assert circuits.of("a").why == "quota"


ENDS = st.one_of(
    st.just(DONE),
    st.none(),
    st.builds(error, st.sampled_from(ErrorKind), st.none() | st.floats(0, 1e12, allow_nan=False)),
)


@given(steps=st.lists(st.tuples(ENDS, st.floats(0, 4000)), max_size=30))
def test_a_provider_is_always_retried_within_an_hour_and_an_answer_closes_its_circuit(
    steps: list[tuple[DoneChunk | ErrorChunk | None, float]],
) -> None:
    clock = Clock()
    circuits = Circuits(clock)
    for end, passed_s in steps:
        circuits.asked("a")
        circuits.heard("a", end)
        assert 0.0 <= circuits.of("a").wait_s <= LONGEST_COOLDOWN_S + 0.001
        clock.now += passed_s
    circuits.heard("a", DONE)
    assert circuits.of("a").state is CircuitState.CLOSED


def test_an_outage_lasts_from_its_first_failure_to_the_next_answer() -> None:
    circuits = Circuits(Clock(), Wall())
    for _ in range(4):
        circuits.heard("a", error(ErrorKind.OVERLOADED))
    assert circuits.failing_since("a") == AT
    assert circuits.failing_since("b") is None

    circuits.heard("a", DONE)
    assert circuits.failing_since("a") is None


@pytest.mark.parametrize(("passed", "since"), [(59, AT), (61, AT + timedelta(minutes=62))])
def test_a_failure_after_an_idle_hour_is_a_new_outage(passed: int, since: datetime) -> None:
    wall = Wall()
    circuits = Circuits(Clock(), wall)
    circuits.heard("a", error(ErrorKind.OVERLOADED))
    wall.now += timedelta(minutes=passed)
    circuits.heard("a", error(ErrorKind.RATE_LIMITED))

    assert circuits.failing_since("a") == since


def test_a_request_refused_for_its_own_fault_ends_the_outage() -> None:
    circuits = Circuits(Clock(), Wall())
    circuits.heard("a", error(ErrorKind.CUT))
    circuits.heard("a", error(ErrorKind.BAD_REQUEST))

    assert circuits.failing_since("a") is None


def test_an_outage_is_logged_at_its_start_and_its_end_only() -> None:
    clock, wall = Clock(), Wall()
    circuits = Circuits(clock, wall)
    with capture_logs() as lines:
        circuits.heard("openai", error(ErrorKind.RATE_LIMITED))
        for kind in (ErrorKind.UNREACHABLE, ErrorKind.TIMEOUT, ErrorKind.UNREACHABLE):
            circuits.heard("openai", error(kind))
        circuits.heard("openai", DONE)
        circuits.heard("openai", DONE)

    assert lines == [
        {
            "event": "provider.down", "log_level": "warning", "provider": "openai",
            "kind": "unreachable", "why": "went wrong",
        },
        {"event": "provider.recovered", "log_level": "info", "provider": "openai", "away_s": 240, "tries": 4},
    ]  # fmt: skip


def test_a_rate_limit_and_an_invalid_request_are_not_outages() -> None:
    circuits = Circuits(Clock(), Wall())
    with capture_logs() as lines:
        for kind in (ErrorKind.RATE_LIMITED, ErrorKind.BAD_REQUEST):
            circuits.heard("openai", error(kind))
        circuits.heard("openai", DONE)

    assert lines == []


def test_the_next_outage_is_reported_again() -> None:
    circuits = Circuits(Clock(), Wall())
    with capture_logs() as lines:
        for _ in range(2):
            circuits.heard("openai", error(ErrorKind.AUTH))
            circuits.heard("openai", DONE)

    assert [line["event"] for line in lines] == ["provider.down", "provider.recovered"] * 2
