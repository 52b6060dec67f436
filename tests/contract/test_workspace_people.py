"""What people do in the local workspace, in process and over the page's own requests."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiohttp
import orjson
import pytest
from slack_bolt.async_app import AsyncApp

from bot.demo.workspace.app import serving
from bot.demo.workspace.errors import CannotDoThat
from bot.demo.workspace.person_api import ProviderOption
from bot.demo.workspace.seeds import (
    ARCHIVED,
    CHECKOUT,
    DEACTIVATED,
    DIRECT,
    GUEST,
    MEMBER,
    OTHER_BOT,
    PAYMENTS,
    RESPONDER,
    RESPONDERS,
    STRANGER,
    STRANGER_TEAM,
)
from bot.demo.workspace.state import Workspace
from tests.fixtures_workspace import bolt, connected, served, web_client


def button(action_id: str) -> list[dict[str, Any]]:
    text = {"type": "plain_text", "text": action_id}
    element = {"type": "button", "action_id": action_id, "text": text, "value": "v"}
    return [{"type": "actions", "elements": [element]}]


MODAL = {
    "type": "modal",
    "callback_id": "reject",
    "title": {"type": "plain_text", "text": "Reject"},
    "submit": {"type": "plain_text", "text": "Reject"},
    "blocks": [
        {
            "type": "input",
            "block_id": "reason",
            "label": {"type": "plain_text", "text": "Why?"},
            "element": {"type": "plain_text_input", "action_id": "text"},
        }
    ],
}


@pytest.fixture
async def workspace() -> AsyncIterator[Workspace]:
    async with served() as workspace:
        yield workspace


@pytest.fixture
async def page(workspace: Workspace) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(workspace.origin) as session:
        yield session


def collecting(app: AsyncApp) -> list[dict[str, Any]]:
    received: list[dict[str, Any]] = []

    @app.event("message")
    async def message(body: dict[str, Any]) -> None:
        received.append(body)

    @app.event("app_mention")
    async def mention(body: dict[str, Any]) -> None:
        received.append(body)

    return received


@pytest.mark.parametrize(
    ("user", "channel"),
    [(DEACTIVATED, CHECKOUT), (RESPONDER, ARCHIVED), (MEMBER, DIRECT), ("U0NOBODY", CHECKOUT)],
)
async def test_people_can_write_only_where_slack_allows_it(
    workspace: Workspace, user: str, channel: str
) -> None:
    with pytest.raises(CannotDoThat):
        await workspace.say(user, channel, "hi")


async def test_a_mention_in_a_direct_message_is_only_a_message() -> None:
    async with served() as workspace, bolt(workspace) as app:
        received = collecting(app)
        async with connected(workspace, app):
            await workspace.say(RESPONDER, DIRECT, "@kortex hello")
            await workspace.settled()

    assert [(e["event"]["type"], e["event"]["channel_type"]) for e in received] == [
        ("message", "im")
    ]


async def test_a_foreign_users_message_names_their_team() -> None:
    async with served() as workspace, bolt(workspace) as app:
        received = collecting(app)
        async with connected(workspace, app):
            await workspace.say(STRANGER, PAYMENTS, "hello")
            await workspace.settled()

    assert received[0]["event"]["user_team"] == STRANGER_TEAM
    assert received[0]["team_id"] == workspace.app.team_id
    assert received[0]["is_ext_shared_channel"] is True


async def test_another_bots_message_is_marked() -> None:
    async with served() as workspace, bolt(workspace) as app:
        received = collecting(app)
        async with connected(workspace, app):
            await workspace.say(OTHER_BOT, CHECKOUT, "alert!")
            await workspace.settled()

    assert received[0]["event"]["bot_id"] == "B0OTHERBT1"


async def test_a_deletion_has_no_text_of_its_own() -> None:
    async with served() as workspace, bolt(workspace) as app:
        received = collecting(app)
        async with connected(workspace, app):
            ts = await workspace.say(MEMBER, CHECKOUT, "oops")
            await workspace.delete(MEMBER, CHECKOUT, ts)
            await workspace.settled()

    event = received[-1]["event"]
    assert (event["subtype"], event["deleted_ts"]) == ("message_deleted", ts)
    assert "text" not in event


async def test_a_removed_button_cannot_be_pressed_except_by_a_stale_client() -> None:
    async with served() as workspace, bolt(workspace) as app:
        pressed: list[dict[str, Any]] = []

        @app.action("confirm")
        async def confirm(ack: Any, body: dict[str, Any]) -> None:
            await ack()
            pressed.append(body)

        async with connected(workspace, app), web_client(workspace) as client:
            posted = await client.chat_postMessage(
                channel=CHECKOUT, text="card", blocks=button("confirm")
            )
            await client.chat_update(channel=CHECKOUT, ts=posted["ts"], text="decided")
            with pytest.raises(CannotDoThat):
                await workspace.click(MEMBER, posted["ts"], "confirm")
            ack = await workspace.click(MEMBER, posted["ts"], "confirm", stale=True)

    assert ack.ok
    assert pressed[0]["message"]["text"] == "card"


MENU: dict[str, Any] = {
    "type": "static_select",
    "action_id": "open",
    "placeholder": {"type": "plain_text", "text": "Open…"},
    "options": [
        {"text": {"type": "plain_text", "text": text}, "value": text.lower()}
        for text in ("One", "Two")
    ],
}


@pytest.fixture
async def pressed_menu() -> AsyncIterator[tuple[Workspace, str, list[dict[str, Any]]]]:
    """A message with a menu and a button, and what the app received of them."""
    async with served() as workspace, bolt(workspace) as app:
        received: list[dict[str, Any]] = []

        async def chosen(ack: Any, body: dict[str, Any]) -> None:
            await ack()
            received.append(body)

        app.action("open")(chosen)
        app.action("other")(chosen)
        blocks = [{"type": "actions", "block_id": "b", "elements": [MENU]}, *button("other")]
        async with connected(workspace, app), web_client(workspace) as client:
            posted = await client.chat_postMessage(channel=CHECKOUT, text="answer", blocks=blocks)
            yield workspace, str(posted["ts"]), received


async def test_a_choice_arrives_as_the_complete_option(
    pressed_menu: tuple[Workspace, str, list[dict[str, Any]]],
) -> None:
    workspace, ts, received = pressed_menu
    await workspace.click(MEMBER, ts, "open", chosen={"selected_option": {"value": "two"}})

    (action,) = received[0]["actions"]
    assert action.pop("action_ts")
    assert action == {
        "type": "static_select",
        "action_id": "open",
        "block_id": "b",
        "placeholder": MENU["placeholder"],
        "selected_option": MENU["options"][1],
    }
    state = {"type": "static_select", "selected_option": MENU["options"][1]}
    assert received[0]["state"] == {"values": {"b": {"open": state}}}


async def test_a_button_s_press_has_no_selected_option(
    pressed_menu: tuple[Workspace, str, list[dict[str, Any]]],
) -> None:
    workspace, ts, received = pressed_menu
    await workspace.click(MEMBER, ts, "other")

    state = {"type": "static_select", "selected_option": None}
    assert received[0]["state"] == {"values": {"b": {"open": state}}}


async def test_the_page_s_choice_is_the_message_s_own_option(
    pressed_menu: tuple[Workspace, str, list[dict[str, Any]]],
) -> None:
    workspace, ts, received = pressed_menu
    chosen = {"selected_option": {"value": "one", "text": "forged"}, "value": "forged"}
    click = {"user": MEMBER, "channel": CHECKOUT, "message_ts": ts, "action_id": "open"}
    async with (
        aiohttp.ClientSession(workspace.origin) as page,
        page.post("/person/clicks", json=click | {"chosen": chosen}) as response,
    ):
        assert response.status == 200

    assert received[0]["actions"][0]["selected_option"] == MENU["options"][0]
    assert "forged" not in str(received)


async def test_an_option_outside_the_menu_cannot_be_chosen(
    pressed_menu: tuple[Workspace, str, list[dict[str, Any]]],
) -> None:
    workspace, ts, received = pressed_menu
    with pytest.raises(CannotDoThat, match="has no option"):
        await workspace.click(MEMBER, ts, "open", chosen={"selected_option": {"value": "three"}})
    with pytest.raises(CannotDoThat, match="has no option"):
        await workspace.click(MEMBER, ts, "open")

    assert received == []


async def test_a_click_without_a_connected_app_fails_at_once(workspace: Workspace) -> None:
    async with web_client(workspace) as client:
        posted = await client.chat_postMessage(
            channel=CHECKOUT, text="card", blocks=button("confirm")
        )
    ack = await workspace.click(MEMBER, posted["ts"], "confirm")

    assert (ack.ok, ack.reason) == (False, "no_connection")


async def test_a_modal_opens_reports_errors_and_closes() -> None:
    async with served() as workspace, bolt(workspace) as app:
        submitted: list[Any] = []

        @app.action("reject")
        async def reject(ack: Any, body: dict[str, Any], client: Any) -> None:
            await ack()
            await client.views_open(trigger_id=body["trigger_id"], view=MODAL)

        @app.view("reject")
        async def rejected(ack: Any, view: dict[str, Any]) -> None:
            reason = view["state"]["values"]["reason"]["text"]["value"]
            submitted.append(reason)
            errors = {"reason": "Say more"}
            await (ack() if reason else ack(response_action="errors", errors=errors))

        async with connected(workspace, app), web_client(workspace) as client:
            posted = await client.chat_postMessage(
                channel=CHECKOUT, text="card", blocks=button("reject")
            )
            await workspace.click(RESPONDER, posted["ts"], "reject")
            modals = await workspace.wait_for(lambda: workspace.modals_of(RESPONDER))
            view_id = str(modals[0]["id"])
            empty = await workspace.submit(RESPONDER, view_id, {"text": ""})
            still_open = len(workspace.modals_of(RESPONDER))
            await workspace.submit(RESPONDER, view_id, {"text": "too risky"})

    assert empty.body == {"response_action": "errors", "errors": {"reason": "Say more"}}
    assert still_open == 1
    assert workspace.modals_of(RESPONDER) == ()
    assert submitted == [None, "too risky"]


async def test_a_command_arrives_with_its_mentions_escaped() -> None:
    async with served() as workspace, bolt(workspace) as app:
        bodies: list[dict[str, Any]] = []

        @app.command("/kortex")
        async def command(ack: Any, body: dict[str, Any]) -> None:
            bodies.append(body)
            await ack("done")

        async with connected(workspace, app):
            ack = await workspace.command(RESPONDER, CHECKOUT, "role add @priya")

    assert bodies[0]["text"] == f"role add <@{MEMBER}>"
    assert ack.body == {"text": "done"}


async def test_a_commands_answer_is_shown_to_its_sender() -> None:
    async with served() as workspace, bolt(workspace) as app:

        @app.command("/kortex")
        async def command(ack: Any) -> None:
            await ack("done")

        async with connected(workspace, app):
            await workspace.command(RESPONDER, CHECKOUT, "help")

    assert [message.text for message in workspace.whispers(RESPONDER)] == ["done"]


async def test_the_page_may_load_nothing_from_other_hosts(page: aiohttp.ClientSession) -> None:
    async with page.get("/") as response:
        html = await response.text()
        policy = response.headers["content-security-policy"]

    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy
    assert "http://" not in html
    assert "https://" not in html


@pytest.mark.parametrize("name", ["app.js", "blocks.js", "style.css", "text.js", "mark.svg"])
async def test_the_pages_files_are_served(page: aiohttp.ClientSession, name: str) -> None:
    async with page.get(f"/page/{name}") as response:
        assert response.status == 200
        assert response.headers["x-content-type-options"] == "nosniff"


async def test_the_page_gets_the_names_of_groups(page: aiohttp.ClientSession) -> None:
    async with page.get("/person/workspace") as response:
        assert (await response.json())["groups"] == {RESPONDERS: "responders"}


async def test_another_host_name_is_refused(page: aiohttp.ClientSession) -> None:
    async with page.get("/person/workspace", headers={"host": "evil.example"}) as response:
        assert response.status == 421


async def test_a_server_on_every_address_accepts_only_loopback_names() -> None:
    async with serving(Workspace(), "0.0.0.0") as origin, aiohttp.ClientSession(origin) as page:
        async with page.get("/person/workspace", headers={"host": "192.0.2.1:8420"}) as response:
            assert response.status == 421
        async with page.get("/person/workspace") as response:
            assert response.status == 200
    assert origin.startswith("http://127.0.0.1:")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize("path", ["/person/messages", "/person/clicks", "/api/chat.postMessage"])
async def test_another_sites_page_cannot_post(
    page: aiohttp.ClientSession, path: str, headers: dict[str, str]
) -> None:
    async with page.post(path, json={}, headers=headers) as response:
        assert response.status == 403


async def test_our_own_page_can_post(page: aiohttp.ClientSession) -> None:
    body = {"user": RESPONDER, "channel": CHECKOUT, "text": "x"}
    async with page.get("/") as response:
        own = {"Origin": str(response.url.origin()), "Sec-Fetch-Site": "same-origin"}
    async with page.post("/person/messages", json=body, headers=own) as response:
        assert response.status == 200


async def test_another_sites_form_cannot_post(page: aiohttp.ClientSession) -> None:
    form = {"user": RESPONDER, "channel": CHECKOUT, "text": "x"}
    async with page.post("/person/messages", data=form) as response:
        assert response.status == 415


async def test_an_impossible_action_is_refused_with_a_message(page: aiohttp.ClientSession) -> None:
    body = {"user": DEACTIVATED, "channel": CHECKOUT, "text": "x"}
    async with page.post("/person/messages", json=body) as response:
        assert response.status == 409
        assert await response.json() == {"error": "lee is deactivated"}


async def test_the_feed_shows_messages_and_only_the_viewers_ephemeral_ones(
    workspace: Workspace, page: aiohttp.ClientSession
) -> None:
    async with (
        page.get("/person/feed", params={"user": MEMBER}) as feed,
        web_client(workspace) as client,
    ):
        await feed.content.readuntil(b"\n\n")
        for user, text in ((GUEST, "for the guest"), (MEMBER, "for the member")):
            await client.chat_postEphemeral(channel=CHECKOUT, user=user, text=text)
        body = {"user": RESPONDER, "channel": CHECKOUT, "text": "<script>"}
        await page.post("/person/messages", json=body)
        lines = [await feed.content.readuntil(b"\n\n") for _ in range(2)]

    changes = [orjson.loads(line.removeprefix(b"data: ")) for line in lines]
    assert [(each["kind"], each["body"]["text"]) for each in changes] == [
        ("ephemeral", "for the member"),
        ("message", "&lt;script&gt;"),
    ]


async def test_a_closed_tab_is_not_logged(
    workspace: Workspace, page: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    tab = await page.get("/person/feed", params={"user": MEMBER})
    await tab.content.readuntil(b"\n\n")
    assert tab.connection
    assert tab.connection.transport
    tab.connection.transport.abort()

    for text in ("a", "b", "c"):
        body = {"user": RESPONDER, "channel": CHECKOUT, "text": text}
        async with page.post("/person/messages", json=body) as response:
            assert response.status == 200
    await workspace.feed.wait_for(lambda: workspace.feed.followers == 0, 5)

    assert caplog.records == []


class TwoProviders:
    def __init__(self) -> None:
        self.chosen = "triage"

    async def options(self) -> Sequence[ProviderOption]:
        return [
            ProviderOption("triage", "Triage", available=True, chosen=self.chosen == "triage"),
            ProviderOption("ollama", "Ollama", available=True, chosen=self.chosen == "ollama"),
        ]

    async def choose(self, provider_id: str) -> None:
        self.chosen = provider_id


async def test_the_provider_is_chosen_on_the_page() -> None:
    async with (
        serving(Workspace(), providers=TwoProviders()) as origin,
        aiohttp.ClientSession(origin) as page,
        page.post("/person/provider", json={"id": "ollama"}) as response,
    ):
        answer = await response.json()

    assert [(each["id"], each["chosen"]) for each in answer["providers"]] == [
        ("triage", False),
        ("ollama", True),
    ]
