"""Whether Slack takes our token: learned from calls, asked for when none is made."""

from collections.abc import Mapping

import pytest
from pydantic import JsonValue

from bot.ports.failures import SurfaceFailed
from bot.slack.api.calls import WatchedCalls
from bot.slack.api.web_api import LockedOut, Refused, Unreachable
from bot.telemetry.metrics import Metrics


class Scripted:
    """`SlackCalls` with scripted answers."""

    def __init__(self) -> None:
        self.failure: SurfaceFailed | None = None
        self.methods: list[str] = []

    async def call(self, method: str, **_: JsonValue) -> Mapping[str, JsonValue]:
        self.methods.append(method)
        if self.failure is not None:
            raise self.failure
        return {"ok": True}


class Hands:
    """A clock that is turned."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_a_refused_token_is_a_problem_until_a_call_succeeds() -> None:
    inner = Scripted()
    access = WatchedCalls(inner, Metrics(), Hands())
    inner.failure = LockedOut("chat.update", "token_revoked")
    with pytest.raises(LockedOut):
        await access.call("chat.update")

    assert "token_revoked" in (await access.problem() or "")

    inner.failure = None
    await access.probe(every_s=0)
    assert await access.problem() is None
    assert access.is_open


async def test_another_refusal_says_nothing_about_the_token() -> None:
    inner = Scripted()
    access = WatchedCalls(inner, Metrics(), Hands())
    inner.failure = Refused("chat.update", "msg_too_long")
    with pytest.raises(Refused):
        await access.call("chat.update")

    assert access.is_open


async def test_an_unused_token_is_probed_regularly() -> None:
    inner, clock = Scripted(), Hands()
    access = WatchedCalls(inner, Metrics(), clock)
    await access.probe(60)
    assert inner.methods == []

    clock.now = 61.0
    inner.failure = LockedOut("auth.test", "account_inactive")
    await access.probe(60)

    assert inner.methods == ["auth.test"]
    assert not access.is_open


@pytest.mark.parametrize("code", ["invalid_auth", "token_revoked", "account_inactive"])
async def test_slack_is_asked_once_a_minute_after_any_answer(code: str) -> None:
    inner, clock = Scripted(), Hands()
    access = WatchedCalls(inner, Metrics(), clock)
    for second in range(601):
        clock.now = float(second)
        inner.failure = LockedOut("auth.test", code) if second < 300 else None
        await access.probe(60)

    assert inner.methods == ["auth.test"] * 10


async def test_an_unreachable_slack_is_a_note_and_not_a_problem() -> None:
    inner = Scripted()
    access = WatchedCalls(inner, Metrics(), Hands())
    inner.failure = Unreachable("auth.test", "timed out")
    await access.probe(0)

    assert await access.problem() is None
    assert "timed out" in access.note

    inner.failure = None
    await access.probe(0)
    assert access.note == ""


async def test_the_state_of_a_token_survives_a_slack_outage() -> None:
    inner = Scripted()
    access = WatchedCalls(inner, Metrics(), Hands())
    for failure in (LockedOut("auth.test", "invalid_auth"), Unreachable("auth.test", "timed out")):
        inner.failure = failure
        await access.probe(0)

    assert "invalid_auth" in (await access.problem() or "")
