"""The client of the chat API: connections that break, and answers of something else."""

from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio
from aiohttp import web

from adapters.errors import AdapterError, BadAnswer
from adapters.http.client import http_client
from bot.cli.chat import client as module
from bot.cli.chat.client import ChatClient, ChatFailed, Lost
from bot.web.api import models
from tests.fixtures_http import serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

SESSION = "s_" + "0" * 24
DONE = (
    b'id: 4\nevent: done\ndata: {"message_id":"1","end":"answered","text":"Full.","provider":"p",'
    b'"model":"m","rounds":1,"usage":{"input_tokens":1,"input_uncached_tokens":1,'
    b'"cache_read_tokens":0,"cache_write_tokens":0,"output_tokens":1},"cost_usd_micros":null,'
    b'"notices":[],"evidence":[],"verdict":"","suspects":[],"coverage":null}\n\n'
)
TEXT = b'id: 3\nevent: text\ndata: {"message_id":"1","text":"The pool "}\n\n'


class Service:
    """Answers each request with the next of `parts`: what is written before the connection ends."""

    def __init__(self) -> None:
        self.url = ""
        self.parts: Sequence[tuple[int, bytes]] = ()
        self.asked: list[tuple[str, str]] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        headers = request.headers
        self.asked.append((headers["Idempotency-Key"], headers.get("Last-Event-ID", "")))
        status, body = self.parts[min(len(self.asked), len(self.parts)) - 1]
        response = web.StreamResponse(status=status)
        await response.prepare(request)
        await response.write(body)
        return response


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running() -> AsyncIterator[Service]:
    service = Service()
    async with serving(service.answer) as service.url:
        yield service


@pytest.fixture
def service(running: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(module, "LONGEST_PAUSE_S", 0.002)
    monkeypatch.setattr(module, "PATIENCE_S", 0.003)
    running.asked.clear()
    return running


async def events_of(service: Service) -> list[models.Event | Lost]:
    client = http_client(base_url=service.url)
    try:
        return [each async for each in ChatClient(client).ask(SESSION, "why?")]
    finally:
        await client.aclose()


async def test_an_answer_continues_after_a_lost_connection_without_a_second_question(
    service: Service,
) -> None:
    service.parts = [(200, TEXT + b"id: 9\nevent: te"), (200, b": still here\n\n"), (200, DONE)]

    found = await events_of(service)

    assert [type(each) for each in found] == [models.TextEvent, Lost, models.DoneEvent]
    assert len({key for key, _ in service.asked}) == 1
    assert [last for _, last in service.asked] == ["", "3", "3"]


async def test_a_service_that_cannot_store_is_asked_again(service: Service) -> None:
    busy = b'{"error": {"code": "unavailable", "message": "The database cannot be used now."}}'
    service.parts = [(503, busy), (200, DONE)]

    assert isinstance((await events_of(service))[-1], models.DoneEvent)


async def test_a_silent_service_times_out(service: Service) -> None:
    service.parts = [(502, b"<html>bad gateway</html>")]

    with pytest.raises(AdapterError):
        await events_of(service)


async def test_a_refusal_is_shown_in_the_services_words(service: Service) -> None:
    service.parts = [(403, b'{"error": {"code": "forbidden", "message": "You may not ask."}}')]

    with pytest.raises(ChatFailed, match="You may not ask") as refused:
        await events_of(service)

    assert refused.value.code == "forbidden"
    assert len(service.asked) == 1


async def test_a_rejected_token_is_explained_to_a_person(
    service: Service,
) -> None:
    service.parts = [
        (401, b'{"error": {"code": "unauthorized", "message": "Send `Authorization`"}}')
    ]

    with pytest.raises(ChatFailed, match=r"the token was rejected.*kortex token create") as refused:
        await events_of(service)

    assert refused.value.code == "unauthorized"


@pytest.mark.parametrize(
    "body",
    [
        b'event: text\ndata: {"message_id": 5}\n\n',
        b"event: done\ndata: [\n\n",
        b'event: text\ndata: {"message_id":"1","text":"\\ud800"}\n\n',
        b"event: text\ndata: " + b"[" * 100_000 + b"\n\n",
    ],
    ids=["another type", "no JSON", "half a surrogate", "brackets"],
)
async def test_an_unreadable_event_is_an_error_and_not_an_endless_loop(
    service: Service, body: bytes
) -> None:
    service.parts = [(200, body)]

    with pytest.raises(BadAnswer):
        await events_of(service)

    assert len(service.asked) == 1


async def test_an_endless_event_is_not_waited_for(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_EVENT_BYTES", 1000)
    service.parts = [(200, b"data: " + b"x" * 5000)]

    with pytest.raises(BadAnswer):
        await events_of(service)


async def test_an_unknown_event_of_a_later_version_is_skipped(service: Service) -> None:
    service.parts = [(200, b'id: 1\nevent: picture\ndata: {"x": 1}\n\nretry: 5\n\n' + DONE)]

    assert [type(each) for each in await events_of(service)] == [models.DoneEvent]
