"""The local workspace keeps the session status of a thread, and offers Stop during a turn."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.demo.workspace.errors import CannotDoThat
from bot.demo.workspace.identity import AppIdentity
from bot.demo.workspace.seeds import CHECKOUT, DIRECT, MEMBER
from bot.demo.workspace.state import Setup, Workspace
from tests.fixtures_workspace import served, web_client

PROMPT = {"title": "What changed?", "message": "What changed?"}


@pytest.fixture
async def workspace() -> AsyncIterator[Workspace]:
    async with served() as workspace:
        yield workspace


@pytest.fixture
async def client(workspace: Workspace) -> AsyncIterator[AsyncWebClient]:
    async with web_client(workspace) as client:
        yield client


async def test_a_thread_has_the_last_status_that_the_app_set(
    workspace: Workspace, client: AsyncWebClient
) -> None:
    thread = await workspace.say(MEMBER, CHECKOUT, "why?")
    where = {"channel_id": CHECKOUT, "thread_ts": thread}
    await client.agents_sessions_setStatus(**where, status="processing", title="Why?")
    await client.agents_sessions_setStatus(**where, status="suspended")

    session = workspace.sessions.of(CHECKOUT, thread)
    assert (session.status, session.title) == ("suspended", "Why?")
    (told,) = workspace.sessions.listed(lambda channel: channel == CHECKOUT)
    assert (told["title"], told["thread_ts"]) == ("Why?", thread)


async def test_a_stream_counts_as_work_until_it_ends(
    workspace: Workspace, client: AsyncWebClient
) -> None:
    thread = await workspace.say(MEMBER, CHECKOUT, "why?")
    answer = await client.chat_startStream(
        channel=CHECKOUT,
        thread_ts=thread,
        recipient_user_id=MEMBER,
        recipient_team_id=workspace.app.team_id,
    )
    began = workspace.sessions.of(CHECKOUT, thread).status
    await client.chat_stopStream(channel=CHECKOUT, ts=answer["ts"], session_status="suspended")

    assert (began, workspace.sessions.of(CHECKOUT, thread).status) == ("processing", "suspended")


async def test_stop_ends_a_stream_and_is_offered_only_during_work(
    workspace: Workspace, client: AsyncWebClient
) -> None:
    thread = await workspace.say(MEMBER, CHECKOUT, "why?")
    with pytest.raises(CannotDoThat):
        await workspace.stop(MEMBER, CHECKOUT, thread)
    answer = await client.chat_startStream(
        channel=CHECKOUT,
        thread_ts=thread,
        recipient_user_id=MEMBER,
        recipient_team_id=workspace.app.team_id,
    )
    await workspace.stop(MEMBER, CHECKOUT, thread)

    with pytest.raises(SlackApiError, match="stopped_by_user"):
        await client.chat_appendStream(channel=CHECKOUT, ts=answer["ts"], markdown_text="x")


@pytest.mark.parametrize(
    ("method", "arguments", "error"),
    [
        ("agents.sessions.setStatus", {"status": "is thinking…"}, "invalid_arguments"),
        ("agents.sessions.setStatus", {"status": "active", "thread_ts": "1.000001"}, "invalid_thread_ts"),
        ("assistant.threads.setTitle", {"title": "x", "thread_ts": "1.000001"}, "invalid_thread_ts"),
        ("assistant.threads.setSuggestedPrompts", {"prompts": [PROMPT] * 5}, "invalid_arguments"),
        ("assistant.threads.setSuggestedPrompts", {"prompts": [{"title": "x"}]}, "invalid_arguments"),
    ],
)  # fmt: skip
async def test_slack_refuses_an_invalid_session_call(
    client: AsyncWebClient, method: str, arguments: dict[str, Any], error: str
) -> None:
    with pytest.raises(SlackApiError) as refused:
        await client.api_call(method, json={"channel_id": CHECKOUT, **arguments})

    assert refused.value.response["error"] == error


async def test_prompts_are_stored_per_conversation(
    workspace: Workspace, client: AsyncWebClient
) -> None:
    await client.assistant_threads_setSuggestedPrompts(channel_id=DIRECT, prompts=[PROMPT])

    assert workspace.sessions.prompts[DIRECT] == (PROMPT,)


async def test_an_app_without_the_stop_event_gets_a_warning() -> None:
    app = AppIdentity(subscriptions=frozenset({"app_mention"}))
    async with (
        served(Setup(app=app)) as workspace,
        web_client(workspace) as client,
    ):
        thread = await workspace.say(MEMBER, CHECKOUT, "why?")
        answer = await client.agents_sessions_setStatus(
            channel_id=CHECKOUT, thread_ts=thread, status="processing"
        )

    assert answer["warning"] == "missing_agent_session_stopped_event_subscription"
