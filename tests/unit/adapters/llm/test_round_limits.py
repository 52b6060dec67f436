"""How long an answer may take: the configured timeout, and nothing behind it that is shorter."""

import pytest

from adapters.llm.config import ProviderConfig
from adapters.llm.exchange import Vitals
from adapters.llm.framing import ROUND_LIMIT_S, round_limit_s
from adapters.llm.messages import ErrorKind
from adapters.llm.registry import create, known

SLOW_S = 900.0


def test_a_configured_silence_timeout_is_exact() -> None:
    vitals = Vitals(0.0, SLOW_S)

    assert vitals.wrong(SLOW_S - 1, 0, 0) is None
    assert vitals.wrong(SLOW_S + 1, 0, 0) == (
        ErrorKind.TIMEOUT,
        "sent nothing whole for 900 s",
    )


def test_an_answer_that_began_late_has_the_full_time() -> None:
    vitals = Vitals(0.0, SLOW_S)

    assert [vitals.wrong(at, 1, int(at)) for at in (SLOW_S - 1, 1_500.0, 1_799.0)] == [None] * 3
    assert vitals.wrong(1_801.0, 1, 1_801) == (
        ErrorKind.TIMEOUT,
        "did not come to an end in 1800 s",
    )


@pytest.mark.parametrize(("timeout_s", "limit_s"), [(0.5, 600), (60, 600), (300, 600), (900, 1800)])
def test_the_shortest_round_limit_is_ten_minutes(timeout_s: float, limit_s: float) -> None:
    assert round_limit_s(timeout_s) == limit_s


@pytest.mark.parametrize("name", known())
def test_every_provider_says_how_long_its_rounds_may_take(name: str) -> None:
    provider = create(ProviderConfig(name=name, api_key="k", timeout_s=SLOW_S))

    assert provider.round_limit_s in (2 * SLOW_S, ROUND_LIMIT_S)
    assert provider.round_limit_s == 2 * SLOW_S or provider.unavailable_reason is not None
