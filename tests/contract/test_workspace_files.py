"""Files in the local workspace: shared by people, described by files.info, read with the app's token."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError

from bot.demo.workspace.errors import CannotDoThat
from bot.demo.workspace.files import Upload
from bot.demo.workspace.identity import AppIdentity
from bot.demo.workspace.json_access import JsonObject
from bot.demo.workspace.seeds import CHECKOUT, RESPONDER, STRANGER
from bot.demo.workspace.state import Setup, Workspace
from tests.fixtures_workspace import bolt, connected, served, web_client

LOG = Upload("app.log", b"10:00 ERROR pool exhausted\n")


@pytest.fixture
async def workspace() -> AsyncIterator[Workspace]:
    async with served() as workspace:
        yield workspace


async def shared(workspace: Workspace, upload: Upload = LOG, user: str = RESPONDER) -> JsonObject:
    """The file as the message's event describes it."""
    ts = await workspace.say(user, CHECKOUT, "@kortex what is this?", files=[upload])
    message = workspace.message(CHECKOUT, ts)
    assert message is not None
    return message.files[0]


async def got(url: str, token: str = "") -> tuple[int, bytes, str]:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with (
        aiohttp.ClientSession() as http,
        http.get(url, headers=headers, allow_redirects=False) as answer,
    ):
        return answer.status, await answer.read(), answer.headers.get("location", "")


async def test_a_message_with_a_file_reaches_the_app_as_a_mention_and_as_a_message(
    workspace: Workspace,
) -> None:
    heard: list[dict[str, Any]] = []

    async def hear(body: dict[str, Any]) -> None:
        heard.append(body["event"])

    async with bolt(workspace) as app:
        listening: AsyncApp = app
        listening.event("app_mention")(hear)
        listening.event("message")(hear)
        async with connected(workspace, app):
            await shared(workspace)
            await workspace.wait_for(lambda: len(heard) == 2)

    assert sorted((each["type"], each.get("subtype", "")) for each in heard) == [
        ("app_mention", ""), ("message", "file_share"),
    ]  # fmt: skip
    assert {each["files"][0]["name"] for each in heard} == {"app.log"}


async def test_the_private_address_serves_content_only_to_the_apps_token(
    workspace: Workspace,
) -> None:
    url = str((await shared(workspace))["url_private_download"])

    assert await got(url, workspace.bot_token) == (200, LOG.content, "")
    assert (await got(url))[0] == 302
    assert (await got(url, "xoxb-of-another-app"))[0] == 302


async def test_without_the_scope_neither_description_nor_content_is_served() -> None:
    app = AppIdentity()
    bare = replace(app, scopes=app.scopes - {"files:read"})
    async with served(Setup(app=bare)) as workspace, web_client(workspace) as client:
        described = await shared(workspace)

        with pytest.raises(SlackApiError, match="missing_scope"):
            await client.files_info(file=str(described["id"]))
        assert (await got(str(described["url_private_download"]), bare.bot_token))[0] == 302


async def test_a_file_is_described_until_it_is_deleted(workspace: Workspace) -> None:
    file_id = str((await shared(workspace))["id"])
    async with web_client(workspace) as client:
        before = (await client.files_info(file=file_id))["file"]
        workspace.files.delete(file_id)

        assert (before["mimetype"], before["size"], before["mode"]) == ("text/plain", 27, "hosted")
        with pytest.raises(SlackApiError, match="file_deleted"):
            await client.files_info(file=file_id)
        with pytest.raises(SlackApiError, match="file_not_found"):
            await client.files_info(file="F0NOBODYS1")
    assert (await got(before["url_private_download"], workspace.bot_token))[0] == 404


async def test_an_event_names_a_foreign_file_only_by_its_id(workspace: Workspace) -> None:
    described = await shared(workspace, user=STRANGER)

    assert described == {
        "id": described["id"], "mode": "file_access", "file_access": "check_file_info",
    }  # fmt: skip


async def test_a_file_needs_a_name_and_a_message_needs_content(workspace: Workspace) -> None:
    with pytest.raises(CannotDoThat, match="a file needs a name"):
        await workspace.say(RESPONDER, CHECKOUT, "", files=[Upload(" ", b"x")])
    with pytest.raises(CannotDoThat, match="a message needs text"):
        await workspace.say(RESPONDER, CHECKOUT, "")


async def test_the_page_can_send_a_small_text_with_a_message(workspace: Workspace) -> None:
    body = {
        "user": RESPONDER,
        "channel": CHECKOUT,
        "text": "",
        "files": [{"name": "a.csv", "text": "t,v"}],
    }
    async with (
        aiohttp.ClientSession(workspace.origin) as page,
        page.post("/person/messages", json=body) as answer,
    ):
        ts = (await answer.json())["ts"]

    message = workspace.message(CHECKOUT, ts)
    assert message is not None
    assert (message.files[0]["mimetype"], message.files[0]["size"]) == ("text/csv", 3)
