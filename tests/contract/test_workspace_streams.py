"""The local workspace lets a message grow by appends as Slack does, refusals included."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.demo.workspace.seeds import CHECKOUT, DIRECT, MEMBER, RESPONDER, STRANGER
from bot.demo.workspace.state import Clocks, Setup, Workspace
from bot.demo.workspace.streams import LIFETIME_S
from tests.fixtures_workspace import served, web_client
from tests.slack_request_gate import SlackRequestGate


@dataclass
class Slack:
    """A workspace on a frozen clock, its client, and a thread in it."""

    workspace: Workspace
    client: AsyncWebClient
    clock: list[float]
    thread: str

    async def refused(self, method: str, **arguments: Any) -> str:
        with pytest.raises(SlackApiError) as refused:
            await self.client.api_call(method, json=arguments)
        return str(refused.value.response["error"])

    async def started(self, **more: Any) -> str:
        answer = await self.client.api_call("chat.startStream", json=self.begin(**more))
        return str(answer["ts"])

    def begin(self, **more: Any) -> dict[str, Any]:
        return {
            "channel": CHECKOUT,
            "thread_ts": self.thread,
            "recipient_user_id": MEMBER,
            "recipient_team_id": self.workspace.app.team_id,
            **more,
        }

    async def append(self, ts: str, *chunks: dict[str, Any]) -> None:
        await self.client.chat_appendStream(channel=CHECKOUT, ts=ts, chunks=list(chunks))

    def shown(self, ts: str) -> list[dict[str, Any]]:
        message = self.workspace.message(CHECKOUT, ts)
        assert message is not None
        return [{k: v for k, v in block.items() if k != "block_id"} for block in message.blocks]


@pytest.fixture
async def slack() -> AsyncIterator[Slack]:
    clock = [1000.0]
    setup = Setup(clocks=Clocks(monotonic=lambda: clock[0]))
    async with served(setup) as workspace, web_client(workspace) as client:
        thread = await workspace.say(MEMBER, CHECKOUT, "why?")
        yield Slack(workspace, client, clock, thread)


def said(text: str) -> dict[str, Any]:
    return {"type": "markdown_text", "text": text}


def task(status: str = "in_progress", **more: Any) -> dict[str, Any]:
    return {"type": "task_update", "id": "a", "title": "logs", "status": status, **more}


async def test_a_grown_message_becomes_a_normal_one(slack: Slack) -> None:
    ts = await slack.started(chunks=[{"type": "plan_update", "title": "Looking"}],
                             task_display_mode="plan")  # fmt: skip
    await slack.append(ts, task(), said("It is "))
    await slack.append(ts, task("complete", output="12 lines"), said("down."))
    await slack.client.chat_stopStream(
        channel=CHECKOUT,
        ts=ts,
        blocks=[{"type": "divider"}],
        metadata={"event_type": "e", "event_payload": {"n": 1}},
    )
    await slack.client.chat_update(channel=CHECKOUT, ts=ts, text="It is up.")

    message = slack.workspace.message(CHECKOUT, ts)
    assert message is not None
    assert (message.text, message.metadata) == ("It is up.", {"event_type": "e", "event_payload": {"n": 1}})  # fmt: skip


async def test_a_stream_shows_its_tasks_its_text_and_its_final_blocks(slack: Slack) -> None:
    ts = await slack.started(task_display_mode="plan")
    await slack.append(ts, task("complete"), said("It is "), said("down."))
    await slack.client.chat_stopStream(channel=CHECKOUT, ts=ts, blocks=[{"type": "divider"}])

    assert slack.shown(ts) == [
        {
            "type": "plan",
            "title": "Thinking…",
            "tasks": [{"type": "task_card", "task_id": "a", "title": "logs", "status": "complete"}],
        },
        {"type": "markdown", "text": "It is down."},
        {"type": "divider"},
    ]


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"recipient_user_id": ""}, "missing_recipient_user_id"),
        ({"recipient_team_id": ""}, "missing_recipient_team_id"),
        ({"recipient_user_id": "U0NOBODY"}, "user_not_found"),
        ({"recipient_user_id": STRANGER}, "team_not_found"),
        ({"thread_ts": ""}, "invalid_arguments"),
        ({"thread_ts": "1.000001"}, "thread_not_found"),
        ({"task_display_mode": "wide"}, "invalid_arguments"),
        ({"metadata": {}}, "invalid_arguments"),
        ({"markdown_text": "x", "chunks": []}, "invalid_arguments"),
        ({"markdown_text": "x" * 12_001}, "msg_too_long"),
        ({"chunks": [{"type": "task_update", "id": "a"}]}, "invalid_chunks"),
        ({"chunks": [{"type": "said", "text": "x"}]}, "invalid_chunks"),
        ({"chunks": [{"type": "blocks", "blocks": [{"type": "section"}]}]}, "invalid_blocks"),
    ],
)
async def test_slack_refuses_to_start_an_invalid_stream(
    slack: Slack, more: dict[str, Any], error: str
) -> None:
    assert await slack.refused("chat.startStream", **slack.begin(**more)) == error
    assert len(slack.workspace.thread(CHECKOUT, slack.thread)) == 1


async def test_a_direct_message_needs_no_reader(slack: Slack) -> None:
    thread = await slack.workspace.say(RESPONDER, DIRECT, "why?")

    answer = await slack.client.api_call(
        "chat.startStream", json={"channel": DIRECT, "thread_ts": thread}
    )
    assert answer["ok"]


async def test_a_growing_message_cannot_be_edited(slack: Slack) -> None:
    ts = await slack.started()

    assert (
        await slack.refused("chat.update", channel=CHECKOUT, ts=ts, text="x")
        == "streaming_state_conflict"
    )


async def test_a_stream_ends_after_five_minutes_and_can_be_edited_then(slack: Slack) -> None:
    ts = await slack.started()
    slack.clock[0] += LIFETIME_S - 1
    await slack.append(ts, said("still"))
    slack.clock[0] += 1

    append = {"channel": CHECKOUT, "ts": ts, "markdown_text": "x"}
    stop = {"channel": CHECKOUT, "ts": ts}
    assert await slack.refused("chat.appendStream", **append) == "message_not_in_streaming_state"
    assert await slack.refused("chat.stopStream", **stop) == "message_not_in_streaming_state"
    await slack.client.chat_update(channel=CHECKOUT, ts=ts, text="x")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, "no_text"),
        ({"chunks": []}, "no_text"),
        ({"ts": "1.000001", "markdown_text": "x"}, "message_not_found"),
        ({"markdown_text": "x" * 12_000}, "msg_too_long"),
        ({"chunks": "x"}, "invalid_arguments"),
    ],
)
async def test_slack_refuses_an_invalid_append(
    slack: Slack, arguments: dict[str, Any], error: str
) -> None:
    ts = await slack.started(markdown_text="There is this. ")

    call = {"channel": CHECKOUT, "ts": ts, **arguments}
    assert await slack.refused("chat.appendStream", **call) == error


async def test_a_normal_message_cannot_be_appended_to(slack: Slack) -> None:
    posted = await slack.client.chat_postMessage(channel=CHECKOUT, text="a")

    call = {"channel": CHECKOUT, "ts": posted["ts"], "markdown_text": "x"}
    assert await slack.refused("chat.appendStream", **call) == "message_not_in_streaming_state"


async def test_a_workspace_without_a_method_refuses_it() -> None:
    setup = Setup(request_gate=SlackRequestGate(refused={"chat.startStream": "unknown_method"}))
    async with served(setup) as workspace, web_client(workspace) as client:
        with pytest.raises(SlackApiError) as refused:
            await client.chat_startStream(channel=CHECKOUT, thread_ts="1.000001")

    assert refused.value.response["error"] == "unknown_method"
