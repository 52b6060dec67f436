"""Slack's own libraries against the local workspace: only the base URL and the tokens differ."""

import asyncio
from typing import Any

import pytest
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError

from bot.demo.workspace.delivery import DeliveryPolicy
from bot.demo.workspace.seeds import CHECKOUT, RESPONDER
from bot.demo.workspace.state import Setup, Workspace
from tests.fixtures_workspace import bolt, connected, served, web_client
from tests.signed_http import signed_http
from tests.slack_request_gate import RateLimits, SlackRequestGate

BUTTONS = [
    {"type": "section", "text": {"type": "mrkdwn", "text": "Roll back?"}},
    {
        "type": "actions",
        "block_id": "decide",
        "elements": [
            {
                "type": "button",
                "action_id": "confirm",
                "text": {"type": "plain_text", "text": "Confirm"},
                "value": "p-1",
                "style": "primary",
            }
        ],
    },
]


def answer_and_collect(app: AsyncApp) -> list[dict[str, Any]]:
    """A small bot: answers mentions with a button; what it received is collected."""
    received: list[dict[str, Any]] = []

    @app.event("app_mention")
    async def mentioned(event: dict[str, Any], client: Any) -> None:
        received.append(event)
        posted = await client.chat_postMessage(
            channel=event["channel"], thread_ts=event["ts"], text="Looking…"
        )
        await client.chat_update(
            channel=event["channel"], ts=posted["ts"], text="Done", blocks=BUTTONS
        )

    @app.event("message")
    async def message(event: dict[str, Any]) -> None:
        received.append(event)

    @app.action("confirm")
    async def confirm(ack: Any, body: dict[str, Any], client: Any) -> None:
        await ack()
        received.append(body)
        await client.chat_postEphemeral(
            channel=body["channel"]["id"], user=body["user"]["id"], text="Noted"
        )

    return received


async def answered_thread(workspace: Workspace) -> tuple[str, str]:
    """A mention that the bot answered: root ts and answer ts."""
    root = await workspace.say(RESPONDER, CHECKOUT, "@kortex why is checkout slow?")
    answer = await workspace.wait_for(
        lambda: [m for m in workspace.thread(CHECKOUT, root)[1:] if m.action_ids]
    )
    return root, answer[0].ts


async def test_a_mention_is_answered_in_its_thread_over_socket_mode() -> None:
    async with served() as workspace, bolt(workspace) as app:
        answer_and_collect(app)
        async with connected(workspace, app):
            root, _ = await answered_thread(workspace)

            assert [m.text for m in workspace.thread(CHECKOUT, root)] == [
                f"<@{workspace.app.bot_user_id}> why is checkout slow?",
                "Done",
            ]


async def test_a_mention_arrives_twice_under_two_event_ids() -> None:
    async with served() as workspace, bolt(workspace) as app:
        received = answer_and_collect(app)
        async with connected(workspace, app):
            root, _ = await answered_thread(workspace)
            await workspace.settled()

            assert sorted(e["type"] for e in received if e["ts"] == root) == [
                "app_mention",
                "message",
            ]


async def test_a_click_carries_the_message_and_is_answered_privately() -> None:
    async with served() as workspace, bolt(workspace) as app:
        received = answer_and_collect(app)
        async with connected(workspace, app):
            root, ts = await answered_thread(workspace)
            ack = await workspace.click(RESPONDER, ts, "confirm")
            whispers = await workspace.wait_for(lambda: workspace.whispers(RESPONDER))

            body = next(e for e in received if e["type"] == "block_actions")
            assert ack.ok
            assert body["container"] == {
                "type": "message",
                "message_ts": ts,
                "channel_id": CHECKOUT,
                "is_ephemeral": False,
                "thread_ts": root,
            }
            assert body["message"]["blocks"][1]["block_id"] == "decide"
            assert body["actions"][0]["value"] == "p-1"
            assert body["user"]["id"] == RESPONDER
            assert [w.text for w in whispers] == ["Noted"]


async def test_the_same_app_works_over_signed_http() -> None:
    async with served() as workspace, bolt(workspace) as app:
        answer_and_collect(app)

        async def receive(request: web.Request) -> web.StreamResponse:
            answer = await app.async_dispatch(await to_bolt_request(request))
            return await to_aiohttp_response(answer)

        server = web.Application()
        server.router.add_post("/slack/events", receive)
        runner = web.AppRunner(server)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
        async with signed_http(workspace, url):
            _, ts = await answered_thread(workspace)
            ack = await workspace.click(RESPONDER, ts, "confirm")
            whispers = await workspace.wait_for(lambda: workspace.whispers(RESPONDER))
        await runner.cleanup()

        assert ack.ok
        assert [w.text for w in whispers] == ["Noted"]


@pytest.mark.parametrize(
    ("token", "error"),
    [("", "not_authed"), ("xoxb-wrong", "invalid_auth")],
)
async def test_a_wrong_token_is_refused(token: str, error: str) -> None:
    async with served() as workspace, web_client(workspace, token) as client:
        with pytest.raises(SlackApiError) as refused:
            await client.auth_test()

        assert refused.value.response["error"] == error


async def test_an_app_token_posts_nothing() -> None:
    async with served() as workspace, web_client(workspace, workspace.app_token) as client:
        with pytest.raises(SlackApiError) as refused:
            await client.chat_postMessage(channel=CHECKOUT, text="hi")

        assert refused.value.response["error"] == "not_allowed_token_type"


async def test_more_edits_than_allowed_get_429_with_retry_after() -> None:
    request_gate = SlackRequestGate(RateLimits(per_minute={"chat.update": 2}))
    async with (
        served(Setup(request_gate=request_gate)) as workspace,
        web_client(workspace) as client,
    ):
        posted = await client.chat_postMessage(channel=CHECKOUT, text="0")
        await client.chat_update(channel=CHECKOUT, ts=posted["ts"], text="1")
        await client.chat_update(channel=CHECKOUT, ts=posted["ts"], text="2")
        with pytest.raises(SlackApiError) as refused:
            await client.chat_update(channel=CHECKOUT, ts=posted["ts"], text="3")

        assert refused.value.response.status_code == 429
        assert refused.value.response["error"] == "ratelimited"
        assert 1 <= int(refused.value.response.headers["Retry-After"]) <= 60
        assert request_gate.counters.requests["chat.update"] == 3
        assert request_gate.counters.limited["chat.update"] == 1


async def test_an_unacknowledged_event_is_delivered_again() -> None:
    setup = Setup(delivery=DeliveryPolicy(ack_timeout_s=0.05, retry_delays_s=(0.0,)))
    async with served(setup) as workspace, web_client(workspace) as client:
        opened = await client.apps_connections_open(app_token=workspace.app_token)
        session = client.session
        assert session is not None
        async with session.ws_connect(opened["url"]) as socket:
            hello = await socket.receive_json()
            await workspace.say(RESPONDER, CHECKOUT, "no mention")
            first = await socket.receive_json()
            again = await socket.receive_json()
            await socket.send_json({"envelope_id": again["envelope_id"]})
            await workspace.settled()

        assert hello["type"] == "hello"
        assert (first["retry_attempt"], again["retry_attempt"]) == (0, 1)
        assert again["retry_reason"] == "timeout"
        assert first["payload"]["event_id"] == again["payload"]["event_id"]
        assert workspace.outbox.undelivered == []


async def test_the_client_reconnects_on_request_and_misses_nothing() -> None:
    async with served() as workspace, bolt(workspace) as app:
        answer_and_collect(app)
        async with connected(workspace, app):
            await workspace.sockets.refresh()
            root = await workspace.say(RESPONDER, CHECKOUT, "@kortex still there?")
            await workspace.wait_for(lambda: len(workspace.thread(CHECKOUT, root)) > 1)


async def test_each_envelope_is_sent_to_one_of_several_connections() -> None:
    async with served() as workspace, bolt(workspace) as one, bolt(workspace) as two:
        received = [answer_and_collect(one), answer_and_collect(two)]
        async with connected(workspace, one), connected(workspace, two):
            await asyncio.gather(
                *(workspace.say(RESPONDER, CHECKOUT, f"note {n}") for n in range(4))
            )
            await workspace.settled()

            assert sorted(e["text"] for side in received for e in side) == [
                "note 0",
                "note 1",
                "note 2",
                "note 3",
            ]
            assert all(received)
