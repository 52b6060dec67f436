"""Slack's session status of a thread: the newest state, by the workspace's methods."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest
from pydantic import JsonValue

from bot.domain.ids import ALERTS
from bot.domain.proposal import ProposalState
from bot.slack.api.calls import SlackCalls
from bot.slack.api.web_api import RateLimited, Refused, Unreachable
from bot.slack.delivery.agent_sessions import AgentSessions
from tests.fixtures_slack import ASK
from tests.golden.slack_views import proposal
from tools.redactor import Redacted

NEW, OLD, TITLE = (
    "agents.sessions.setStatus",
    "assistant.threads.setStatus",
    "assistant.threads.setTitle",
)


class Api(SlackCalls):
    """Takes calls, or fails them as `faults` say: by method, in order, then for ever `never`."""

    def __init__(self, *never: str) -> None:
        self.calls: list[tuple[str, Mapping[str, JsonValue]]] = []
        self.never = never
        self.faults: list[Exception] = []
        self.answer: Mapping[str, JsonValue] = {}
        self.gate = asyncio.Event()
        self.gate.set()

    async def call(self, method: str, **arguments: JsonValue) -> Mapping[str, JsonValue]:
        await self.gate.wait()
        self.calls.append((method, arguments))
        if method in self.never:
            raise Refused(method, "unknown_method")
        if self.faults:
            raise self.faults.pop(0)
        return self.answer

    async def until(self, count: int) -> None:
        async with asyncio.timeout(2):
            while len(self.calls) < count:  # noqa: ASYNC110
                await asyncio.sleep(0)

    def told(self) -> list[JsonValue]:
        return [arguments.get("status") for _, arguments in self.calls]


CARD = replace(proposal(), place=ASK.place)


async def test_an_alerts_thread_is_named_without_a_timestamp() -> None:
    api = Api()
    asker = replace(ASK.asker, user=ALERTS)
    text = Redacted("What is wrong since 2026-04-07T14:00Z?")
    async with AgentSessions(api).running() as sessions:
        sessions.begins(replace(ASK, asker=asker, text=text, ts=ASK.place.thread_ts))
        await api.until(1)
    assert api.calls[0][1]["title"] == "What is wrong since 14:00 UTC?"


async def test_a_threads_status_is_working_and_then_idle() -> None:
    api = Api()
    async with AgentSessions(api).running() as sessions:
        sessions.begins(ASK)
        await api.until(1)
        sessions.ends(ASK.place)
        await api.until(2)

    assert api.told() == ["processing", "active"]
    assert api.calls[0] == (
        NEW,
        {
            "channel_id": "C1",
            "thread_ts": ASK.place.thread_ts,
            "status": "processing",
            "title": "why?",
            "initiator_user_id": "U1",
        },
    )


async def test_a_later_question_does_not_name_the_thread_again() -> None:
    api = Api()
    async with AgentSessions(api).running() as sessions:
        sessions.begins(replace(ASK, ts="1763700009.000100"))  # type: ignore[arg-type]
        await api.until(1)

    assert "title" not in api.calls[0][1]


async def test_a_thread_waits_while_its_proposal_waits() -> None:
    api = Api()
    async with AgentSessions(api).running() as sessions:
        sessions.begins(ASK)
        await api.until(1)
        sessions.shows(CARD)
        sessions.ends(ASK.place)
        await api.until(2)
        sessions.shows(replace(CARD, state=ProposalState.CONFIRMED))
        await api.until(3)

    assert api.told() == ["processing", "suspended", "active"]


async def test_an_outdated_status_is_not_sent() -> None:
    api = Api()
    api.gate.clear()
    async with AgentSessions(api).running() as sessions:
        sessions.begins(ASK)
        await asyncio.sleep(0)
        sessions.ends(ASK.place)
        sessions.begins(ASK)
        sessions.ends(ASK.place)
        api.gate.set()
        await api.until(2)

    assert api.told() == ["processing", "active"]


async def test_a_workspace_without_the_new_method_uses_the_older_ones() -> None:
    api = Api(NEW)
    async with AgentSessions(api).running() as sessions:
        sessions.begins(ASK)
        await api.until(3)
        sessions.ends(ASK.place)
        await api.until(4)

    assert [method for method, _ in api.calls] == [NEW, OLD, TITLE, OLD]
    assert (api.told()[1], api.told()[3]) == ("is looking into it…", "")


async def test_a_workspace_with_neither_method_is_asked_once() -> None:
    api = Api(NEW, OLD)
    async with AgentSessions(api).running() as sessions:
        sessions.begins(ASK)
        await api.until(2)
        sessions.ends(ASK.place)
        sessions.begins(ASK)
        await asyncio.sleep(0.01)

    assert [method for method, _ in api.calls] == [NEW, OLD]


@pytest.mark.parametrize("fault", [Unreachable(NEW, "x"), Refused(NEW, "invalid_thread_ts")])
async def test_a_failed_call_does_not_stop_later_statuses(fault: Exception) -> None:
    api = Api()
    api.faults.append(fault)
    async with AgentSessions(api).running() as sessions:
        sessions.begins(ASK)
        await api.until(1)
        sessions.ends(ASK.place)
        await api.until(2)

    assert [method for method, _ in api.calls] == [NEW, NEW]


async def test_a_429_is_waited_for_and_then_the_newest_status_is_sent() -> None:
    api = Api()
    api.faults.append(RateLimited(NEW, 0.01))
    async with AgentSessions(api).running() as sessions:
        sessions.begins(ASK)
        await api.until(1)
        sessions.ends(ASK.place)
        await api.until(2)

    assert api.told() == ["processing", "active"]


async def test_a_missing_stop_event_subscription_is_warned_of_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    api = Api()
    api.answer = {"warning": "missing_agent_session_stopped_event_subscription"}
    async with AgentSessions(api).running() as sessions:
        sessions.begins(ASK)
        await api.until(1)
        sessions.ends(ASK.place)
        await api.until(2)
        await asyncio.sleep(0)

    assert capsys.readouterr().out.count("slack.stop_event.not_subscribed") == 1
