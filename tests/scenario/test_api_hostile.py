"""The chat API under attack: other callers' data stays private, and no request causes a bug."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime
from typing import Any

import aiohttp
import orjson
import pytest
import pytest_asyncio

from bot.domain.chats import ChatEventKind, NewChatEvent
from bot.ports.failures import SurfaceGone
from bot.store.access_tables import callers
from bot.store.chat_tables import chat_events, chat_sessions
from bot.store.tables import proposals
from bot.web.api.chat.stream import ChatServices
from bot.web.api.chat.surface import ChatLogSurface
from tests.fixtures_api import Api, caller
from tests.fixtures_service import INGEST_TOKEN, shared_stage
from tests.held_connection import writing
from tests.scenario import test_api_chat
from tests.scenario.test_api_chat import SCRIPT
from tests.stage import Stage

__all__ = ["SCRIPT", "shared_stage"]

SETTINGS: dict[str, Any] = {
    **test_api_chat.SETTINGS,
    "http": {
        "port": 0,
        "api_token": INGEST_TOKEN,
        "nirmata_wire": True,
        "callers": {"streams": 1},
    },
    "actions": [
        {
            "name": "rollback-deploy",
            "description": "Roll a product back",
            "params_schema": {"type": "object", "properties": {"version": {"type": "string"}}},
            "endpoint": {"url": "PLANE/products/{product}/rollback"},
            "products": ["checkout"],
            "approvals": 2,
        }
    ],
}
CHAT = "/chat/v1/sessions"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def alice(shared_stage: Stage) -> AsyncIterator[Api]:
    async with aiohttp.ClientSession() as http:
        yield await caller(shared_stage, http, "alice", "responder")


async def test_two_questions_at_once_in_one_channel_start_two_turns(
    shared_stage: Stage, alice: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = 1_790_000_000_000_000

    def frozen(_at: datetime) -> int:
        return moment

    mallory = await caller(shared_stage, alice.http, "mallory", "responder")
    of_alice, of_mallory = await alice.open(), await mallory.open()
    monkeypatch.setattr("bot.store.chats.to_micros", frozen)
    looked = await alice.ask(of_alice, "why?")
    message = looked[0].data["message_id"]
    path = f"/chat/v1/sessions/{{}}/messages/{message}/evidence/E1"
    assert (await alice.call("GET", path.format(of_alice)))[0] == 200
    assert (await mallory.call("GET", path.format(of_mallory)))[0] == 404

    answered = await mallory.ask(of_mallory, "propose a way out")
    assert answered[0].data["message_id"] == message
    assert answered[-1].name == "done"
    assert "proposal" in [event.name for event in answered]


BODY = ("Content-Type: application/json", "Content-Length: 9")


async def _sent(api: Api, line: str, *headers: str, host: str = "localhost") -> tuple[int, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    lines = [f"{line} HTTP/1.1", f"Host: {host}", *headers]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + b"{" * 9 * (BODY[1] in headers))
    async with asyncio.timeout(5):
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        size = int(head.partition(b"content-length: ")[2].split()[0])
        told = orjson.loads(await reader.readexactly(size))
    writer.close()
    return int(head.split()[1]), told["error"]["code"] if "error" in told else ""


@pytest.mark.parametrize(
    ("line", "headers", "refused"),
    [
        ("GET /api/v1/nothing", (), (404, "not_found")),
        ("GET /page/nothing.js", (), (404, "not_found")),
        ("OPTIONS /api/v1/me", (), (405, "method_not_allowed")),
        ("PUT /chat/v1/sessions", BODY, (405, "method_not_allowed")),
        (
            "POST /chat/v1/sessions",
            (*BODY, "Content-Encoding: gzip"),
            (415, "unsupported_media_type"),
        ),
        ("POST /chat/v1/sessions", (*BODY[:1], "Content-Length: 2000000"), (413, "too_large")),
    ],
)
async def test_every_refusal_has_the_documented_form(
    alice: Api, line: str, headers: tuple[str, ...], refused: tuple[int, str]
) -> None:
    shown = f"Authorization: Bearer {alice.token}"

    assert await _sent(alice, line, shown, *headers) == refused


ODD_HOSTS = ("::::", "localhost:99999", "localhost:a", "localhost:1:2", "xn--\u00fc", "[::1", "")


@pytest.mark.parametrize("host", [*ODD_HOSTS, "evil.example\\@localhost", "localhost."])
async def test_a_foreign_host_header_is_refused_and_gets_no_cookie(alice: Api, host: str) -> None:
    cookie = f"Cookie: kortex={alice.token}"

    assert await _sent(alice, "GET /", cookie, host=host) == (421, "unknown_host")
    assert await _sent(alice, "GET /api/v1/me", cookie, host=host) == (401, "unauthorized")


@pytest.mark.parametrize(
    ("line", "headers", "taken"),
    [
        ("GET /api/v1/me", (), (200, "")),
        ("GET /api/v1/me", ("Sec-Fetch-Site: same-origin",), (200, "")),
        ("GET /api/v1/me", ("Sec-Fetch-Site: same-site",), (401, "unauthorized")),
        ("GET /api/v1/me", ("Sec-Fetch-Site: cross-site",), (401, "unauthorized")),
        ("GET /api/v1/me", ("Authorization: Bearer other",), (401, "unauthorized")),
        ("POST /chat/v1/sessions", (*BODY, "Origin: http://localhost"), (400, "invalid")),
        ("POST /chat/v1/sessions", BODY, (401, "unauthorized")),
        ("POST /chat/v1/sessions", (*BODY, "Origin: null"), (401, "unauthorized")),
        ("POST /chat/v1/sessions", (*BODY, "Origin: http://localhost:1"), (401, "unauthorized")),
        ("POST /ingest/v1/events", (*BODY, "Origin: http://localhost"), (401, "unauthorized")),
    ],
)
async def test_the_cookie_is_accepted_only_from_our_own_page(
    alice: Api, line: str, headers: tuple[str, ...], taken: tuple[int, str]
) -> None:
    assert await _sent(alice, line, f"Cookie: kortex={alice.token}", *headers) == taken


async def test_a_caller_without_a_free_stream_is_refused_before_a_turn_starts(
    shared_stage: Stage, alice: Api
) -> None:
    busy = await caller(shared_stage, alice.http, "busy", "responder")
    session = await busy.open()
    question = {"text": "why?"}
    wire = {"messages": [{"role": "user", "content": "why?"}]}
    async with busy.stream("GET", f"{CHAT}/{session}/events"):
        status, told = await busy.call("POST", f"{CHAT}/{session}/messages", question)
        assert (status, told["error"]["code"]) == (429, "too_many_streams")
        assert (await busy.call("POST", "/llm-apps/chat", wire))[0] == 429
    assert (await busy.call("GET", f"{CHAT}/{session}/messages"))[1]["messages"] == []
    assert len((await busy.call("GET", CHAT))[1]["sessions"]) == 1


async def test_an_admin_who_loses_the_role_loses_streams_of_other_callers(
    shared_stage: Stage, alice: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.web.api.streams.CHECK_S", 0.0)
    monkeypatch.setattr("bot.web.api.streams.POLL_S", 0.02)
    lead = await caller(shared_stage, alice.http, "former", "lead")
    session = await alice.open()
    async with lead.stream("GET", f"{CHAT}/{session}/events") as events:
        async with writing(shared_stage.service.base.stores.database) as connection:
            row = callers.update().where(callers.c.name == "former").values(roles="[]")
            await connection.execute(row)
        async with asyncio.timeout(5):
            assert [each async for each in events] == []


async def test_a_token_revoked_during_a_turn_gets_no_answer(
    shared_stage: Stage, alice: Api
) -> None:
    leaver = await caller(shared_stage, alice.http, "gone", "responder")
    admin = Api(alice.http, alice.port, INGEST_TOKEN)
    wire = {"messages": [{"role": "user", "content": "look for ever"}]}
    stored = shared_stage.service.base.stores.callers

    async def end_it() -> None:
        held = await _until_running(admin, "gone")
        (token,) = [each.id for each in await stored.tokens() if each.caller.name == "gone"]
        assert await stored.revoke(token, "cli:test")
        assert (await admin.call("POST", f"{CHAT}/{held}/stop"))[1] == {"stopping": True}

    (status, told), _ = await asyncio.gather(leaver.call("POST", "/llm-apps/chat", wire), end_it())
    assert status == 503
    assert "Still looking" not in str(told)


async def _until_running(admin: Api, owner: str) -> str:
    """The id of that caller's newest conversation, once it has a message."""
    async with asyncio.timeout(10):
        while True:
            rows = (await admin.call("GET", CHAT))[1]["sessions"]
            found = [each["id"] for each in rows if each["owner_name"] == owner]
            for session in found:
                read = (await admin.call("GET", f"{CHAT}/{session}/messages"))[1]
                if any(each["text"] for each in read["messages"]):
                    return str(session)
            await asyncio.sleep(0.05)


async def _proposed(api: Api) -> str:
    events = await api.ask(await api.open(), "propose a way out")
    return next(str(e.data["proposal_id"]) for e in events if e.name == "proposal")


async def test_a_withdrawn_vote_is_reported_as_a_rejection(alice: Api) -> None:
    path = f"/api/v1/proposals/{await _proposed(alice)}"
    told = [(await alice.call("POST", f"{path}/{wish}", {}))[1] for wish in ("confirm", "reject")]

    assert [each["result"] for each in told] == ["counted", "won"]
    assert told[1]["proposal"]["state"] == "rejected"


async def test_editing_a_proposal_does_not_confirm_it(shared_stage: Stage, alice: Api) -> None:
    proposal = await _proposed(alice)
    edited = {"state": "superseded", "decided_by": "@person/alice"}
    async with writing(shared_stage.service.base.stores.database) as connection:
        await connection.execute(
            proposals.update().where(proposals.c.id == proposal).values(**edited)
        )
    status, told = await alice.call("POST", f"/api/v1/proposals/{proposal}/confirm", {})
    assert (status, told["result"]) == (200, "lost")


async def test_a_stalled_reader_is_disconnected_and_its_buffer_is_freed(
    shared_stage: Stage, alice: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.web.api.streams.WRITE_S", 0.05)
    session, size = await alice.open(), 16 << 20  # beyond what the system takes from us
    large = NewChatEvent(ChatEventKind.NOTICE, orjson.dumps({"text": "a" * size}).decode())
    await shared_stage.service.base.stores.chats.say(session, large)
    left = asyncio.Event()
    monkeypatch.setattr("bot.web.api.streams._log.debug", lambda *_told, **_more: left.set())
    reader, writer = await asyncio.open_connection("127.0.0.1", alice.port, limit=1_024)
    shown = f"Host: localhost\r\nAuthorization: Bearer {alice.token}"
    writer.write(f"GET {CHAT}/{session}/events HTTP/1.1\r\n{shown}\r\n\r\n".encode())
    async with asyncio.timeout(5):
        await left.wait()
    with suppress(ConnectionError):
        async with asyncio.timeout(5):
            assert len(await reader.read(-1)) < size
    writer.close()


async def test_a_head_request_gets_no_stream(alice: Api) -> None:
    path = f"{CHAT}/{await alice.open()}/events"
    shown = {"Authorization": f"Bearer {alice.token}"}
    async with alice.http.head(f"http://127.0.0.1:{alice.port}{path}", headers=shown) as answer:
        assert answer.status == 405


async def test_an_erased_conversation_stores_no_new_message(
    shared_stage: Stage, alice: Api
) -> None:
    stores = shared_stage.service.base.stores
    found = await stores.chats.get(await alice.open())
    assert found is not None
    services = ChatServices(
        stores.chats, lambda _in, text: text, lambda _channel: (), lambda _session: None
    )
    surface = ChatLogSurface(services)
    await surface.say(found.place, "Rolled back.", "first")
    async with writing(stores.database) as connection:
        events = chat_events.delete().where(chat_events.c.session_id == found.id)
        await connection.execute(events)
        await connection.execute(chat_sessions.delete().where(chat_sessions.c.id == found.id))
    for key in ("second", "third"):
        with pytest.raises(SurfaceGone):
            await surface.say(found.place, "Expired.", key)
