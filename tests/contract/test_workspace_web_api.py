"""The local workspace answers Slack's client as Slack does, refusals included."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.demo.workspace.seeds import (
    ARCHIVED,
    BOTLESS,
    CHECKOUT,
    DEACTIVATED,
    DIRECT,
    GUEST,
    MEMBER,
    PAYMENTS,
    RESPONDER,
    RESPONDERS,
    SECOND_RESPONDER,
    STRANGER,
)
from bot.demo.workspace.state import Setup, Workspace
from tests.fixtures_workspace import served, web_client
from tests.slack_request_gate import SlackRequestGate

SECTION = {"type": "section", "text": {"type": "mrkdwn", "text": "x"}}


@pytest.fixture
async def workspace() -> AsyncIterator[Workspace]:
    async with served() as workspace:
        yield workspace


@pytest.fixture
async def client(workspace: Workspace) -> AsyncIterator[AsyncWebClient]:
    async with web_client(workspace) as client:
        yield client


async def refusal(client: AsyncWebClient, method: str, **arguments: Any) -> str:
    """The error code of a call that must fail."""
    with pytest.raises(SlackApiError) as refused:
        await client.api_call(method, json=arguments)
    return str(refused.value.response["error"])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"channel": CHECKOUT}, "no_text"),
        ({"channel": CHECKOUT, "text": ""}, "no_text"),
        ({"text": "x"}, "invalid_arguments"),
        ({"channel": CHECKOUT, "text": "x", "colour": "red"}, "invalid_arguments"),
        ({"channel": CHECKOUT, "text": 5}, "invalid_arguments"),
        ({"channel": "C0NOWHERE", "text": "x"}, "channel_not_found"),
        ({"channel": BOTLESS, "text": "x"}, "not_in_channel"),
        ({"channel": ARCHIVED, "text": "x"}, "is_archived"),
        ({"channel": CHECKOUT, "text": "x" * 40_001}, "msg_too_long"),
        ({"channel": CHECKOUT, "blocks": {"type": "section"}}, "invalid_blocks_format"),
        ({"channel": CHECKOUT, "blocks": [{"type": "section"}]}, "invalid_blocks"),
        ({"channel": CHECKOUT, "text": "x", "thread_ts": "1.000001"}, "thread_not_found"),
        (
            {"channel": CHECKOUT, "text": "x", "metadata": {"event_type": "e"}},
            "invalid_metadata_format",
        ),
        ({"channel": CHECKOUT, "text": "x", "markdown_text": "y"}, "markdown_text_conflict"),
        ({"channel": CHECKOUT, "markdown_text": "x" * 12_001}, "msg_too_long"),
    ],
)
async def test_slack_refuses_an_invalid_post(
    client: AsyncWebClient, arguments: dict[str, Any], error: str
) -> None:
    assert await refusal(client, "chat.postMessage", **arguments) == error


async def test_every_problem_with_the_arguments_is_named(client: AsyncWebClient) -> None:
    with pytest.raises(SlackApiError) as refused:
        await client.api_call("chat.update", json={"channel": CHECKOUT, "colour": "red"})

    assert refused.value.response["response_metadata"]["messages"] == [
        "[ERROR] unknown argument: colour",
        "[ERROR] missing required field: ts",
    ]


async def test_an_unknown_method_is_refused(client: AsyncWebClient) -> None:
    assert await refusal(client, "chat.shout", text="x") == "unknown_method"


async def test_a_missing_scope_is_named() -> None:
    setup = Setup()
    app = type(setup.app)(scopes=frozenset({"chat:write"}))
    async with served(Setup(app=app)) as workspace, web_client(workspace) as client:
        with pytest.raises(SlackApiError) as refused:
            await client.users_info(user=RESPONDER)

    assert refused.value.response["error"] == "missing_scope"
    assert refused.value.response["needed"] == "users:read"


async def test_an_edit_with_text_alone_drops_the_blocks(
    client: AsyncWebClient, workspace: Workspace
) -> None:
    posted = await client.chat_postMessage(channel=CHECKOUT, text="a", blocks=[SECTION])
    await client.chat_update(channel=CHECKOUT, ts=posted["ts"], text="b")

    message = workspace.message(CHECKOUT, posted["ts"])
    assert message is not None
    assert (message.text, message.blocks) == ("b", ())


async def test_metadata_stays_through_edits_until_it_is_emptied(
    client: AsyncWebClient, workspace: Workspace
) -> None:
    marker = {"event_type": "turn", "event_payload": {"id": "t-1"}}
    posted = await client.chat_postMessage(channel=CHECKOUT, text="a", metadata=marker)
    ts = posted["ts"]
    await client.chat_update(channel=CHECKOUT, ts=ts, text="b")
    kept = await client.conversations_replies(channel=CHECKOUT, ts=ts, include_all_metadata=True)
    plain = await client.conversations_replies(channel=CHECKOUT, ts=ts)
    await client.chat_update(channel=CHECKOUT, ts=ts, text="c", metadata={})
    gone = await client.conversations_replies(channel=CHECKOUT, ts=ts, include_all_metadata=True)

    assert kept["messages"][0]["metadata"] == marker
    assert "metadata" not in plain["messages"][0]
    assert "metadata" not in gone["messages"][0]


async def test_an_edit_of_4000_bytes_fits(client: AsyncWebClient, workspace: Workspace) -> None:
    posted = await client.chat_postMessage(channel=CHECKOUT, text="a")
    await client.chat_update(channel=CHECKOUT, ts=posted["ts"], text="&lt;" * 1000)

    assert workspace.messages(CHECKOUT)[0].text == "&lt;" * 1000


@pytest.mark.parametrize("text", ["x" * 4001, "&" * 801, "<" * 1001, "é" * 2001])
async def test_an_edit_above_4000_escaped_bytes_is_refused(
    client: AsyncWebClient, text: str
) -> None:
    posted = await client.chat_postMessage(channel=CHECKOUT, text="a")
    error = await refusal(client, "chat.update", channel=CHECKOUT, ts=posted["ts"], text=text)

    assert error == "msg_too_long"


async def test_only_own_messages_are_edited_and_deleted(
    client: AsyncWebClient, workspace: Workspace
) -> None:
    ts = await workspace.say(RESPONDER, CHECKOUT, "mine")
    edit = await refusal(client, "chat.update", channel=CHECKOUT, ts=ts, text="x")
    deletion = await refusal(client, "chat.delete", channel=CHECKOUT, ts=ts)

    assert (edit, deletion) == ("cant_update_message", "cant_delete_message")


async def test_an_edit_fails_once_the_message_the_channel_or_the_bot_is_gone(
    client: AsyncWebClient, workspace: Workspace
) -> None:
    first = await client.chat_postMessage(channel=CHECKOUT, text="a")
    second = await client.chat_postMessage(channel=CHECKOUT, text="b")
    third = await client.chat_postMessage(channel=PAYMENTS, text="c")
    await workspace.delete(RESPONDER, CHECKOUT, first["ts"])
    deleted = await refusal(client, "chat.update", channel=CHECKOUT, ts=first["ts"], text="x")
    workspace.archive(CHECKOUT)
    archived = await refusal(client, "chat.update", channel=CHECKOUT, ts=second["ts"], text="x")
    workspace.remove_bot(PAYMENTS)
    removed = await refusal(client, "chat.update", channel=PAYMENTS, ts=third["ts"], text="x")

    assert (deleted, archived, removed) == ("message_not_found", "is_inactive", "not_in_channel")


async def test_rich_text_is_not_replaced_by_other_blocks(client: AsyncWebClient) -> None:
    rich = {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": []}]}
    posted = await client.chat_postMessage(channel=CHECKOUT, text="a", blocks=[rich])

    error = await refusal(
        client, "chat.update", channel=CHECKOUT, ts=posted["ts"], blocks=[SECTION]
    )
    assert error == "block_mismatch"


async def test_an_ephemeral_message_is_shown_only_in_an_existing_thread(
    client: AsyncWebClient, workspace: Workspace
) -> None:
    root = await workspace.say(RESPONDER, CHECKOUT, "root")
    await client.chat_postEphemeral(channel=CHECKOUT, user=GUEST, text="lost", thread_ts=root)
    await workspace.say(MEMBER, CHECKOUT, "reply", thread_ts=root)
    await client.chat_postEphemeral(channel=CHECKOUT, user=GUEST, text="seen", thread_ts=root)

    assert [message.text for message in workspace.whispers(GUEST)] == ["seen"]
    assert workspace.whispers(MEMBER) == ()


async def test_an_ephemeral_message_needs_a_channel_member(client: AsyncWebClient) -> None:
    error = await refusal(client, "chat.postEphemeral", channel=DIRECT, user=GUEST, text="x")
    assert error == "user_not_in_channel"


async def test_replies_are_paged_with_the_root_first(
    client: AsyncWebClient, workspace: Workspace
) -> None:
    root = await workspace.say(RESPONDER, CHECKOUT, "0")
    for text in ("1", "2", "3"):
        await workspace.say(MEMBER, CHECKOUT, text, thread_ts=root)
    first = await client.conversations_replies(channel=CHECKOUT, ts=root, limit=3)
    cursor = first["response_metadata"]["next_cursor"]
    second = await client.conversations_replies(channel=CHECKOUT, ts=root, limit=3, cursor=cursor)

    assert [m["text"] for m in first["messages"]] == ["0", "1", "2"]
    assert first["messages"][0]["reply_count"] == 3
    assert [m["text"] for m in second["messages"]] == ["3"]
    assert (first["has_more"], second["has_more"]) == (True, False)


async def test_reading_methods_ignore_json_bodies(client: AsyncWebClient) -> None:
    assert await refusal(client, "users.info", user=RESPONDER) == "invalid_arguments"


@pytest.mark.parametrize(
    ("user", "member", "value"),
    [
        (GUEST, "is_restricted", True),
        (RESPONDER, "is_restricted", False),
        (DEACTIVATED, "deleted", True),
        (STRANGER, "is_stranger", True),
    ],
)
async def test_users_info_describes_people(
    client: AsyncWebClient, user: str, member: str, value: bool
) -> None:
    found = await client.users_info(user=user)
    assert found["user"][member] is value


async def test_groups_list_their_members(client: AsyncWebClient) -> None:
    found = await client.usergroups_users_list(usergroup=RESPONDERS)
    assert found["users"] == [RESPONDER, SECOND_RESPONDER]


async def test_a_form_with_its_token_in_the_body_is_served(workspace: Workspace) -> None:
    form = {"token": workspace.bot_token, "channel": CHECKOUT, "text": "x", "blocks": "[]"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{workspace.origin}/api/chat.postMessage", data=form) as response,
    ):
        answer = await response.json()

    assert answer["ok"]
    assert workspace.calls[-1].arguments == {"channel": CHECKOUT, "text": "x", "blocks": "[]"}


async def test_a_token_in_a_json_body_does_not_count(workspace: Workspace) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{workspace.origin}/api/auth.test", json={"token": workspace.bot_token}
        ) as response,
    ):
        answer = await response.json()

    assert answer == {"ok": False, "error": "not_authed"}


CHART = {
    "type": "data_visualization",
    "title": "p99",
    "chart": {
        "type": "line",
        "series": [{"name": "p99", "data": [{"label": "12:00", "value": 1}]}],
        "axis_config": {"categories": ["12:00"]},
    },
}


async def test_a_chart_is_posted_where_the_workspace_supports_it(client: AsyncWebClient) -> None:
    answer = await client.api_call(
        "chat.postMessage", json={"channel": CHECKOUT, "text": "x", "blocks": [CHART]}
    )

    assert answer["message"]["blocks"][0]["chart"] == CHART["chart"]


async def test_a_workspace_without_charts_names_the_unknown_block() -> None:
    setup = Setup(request_gate=SlackRequestGate(unknown_blocks={"data_visualization"}))
    async with served(setup) as workspace, web_client(workspace) as client:
        with pytest.raises(SlackApiError) as refused:
            await client.api_call(
                "chat.postMessage",
                json={"channel": CHECKOUT, "text": "x", "blocks": [SECTION, CHART]},
            )

        assert refused.value.response["error"] == "invalid_blocks"
        assert refused.value.response["response_metadata"]["messages"] == [
            "[ERROR] unsupported type: data_visualization [json-pointer:/blocks/1/type]"
        ]
