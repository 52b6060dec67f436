"""Events from outside: the permitted senders, the valid events, and harmless repeats."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from structlog.testing import capture_logs

from adapters.ingested_event import IngestedEvent
from bot.ports.failures import StorageUnavailable
from bot.web import ingest
from bot.web.ingest import PATH, ingest_handler
from tests.fakes.stores import MemoryEvents
from tests.odd_json import NO_INSTANTS, ODD

NOW = datetime(2026, 4, 7, 14, 31, tzinfo=UTC)
TOKEN = "token-of-the-test"
AUTH = {"Authorization": f"Bearer {TOKEN}"}
ONE = AUTH | {"Content-Type": "application/cloudevents+json"}
BATCH = AUTH | {"Content-Type": "application/cloudevents-batch+json; charset=utf-8"}
PLAIN = AUTH | {"Content-Type": "application/json"}
MAX_BYTES = 4096

Client = TestClient[web.Request, web.Application]


class FixedClock:
    def now(self) -> datetime:
        return NOW


class Outage:
    async def add(self, found: Sequence[IngestedEvent]) -> int:
        raise StorageUnavailable("gone")


def an_event(**changes: object) -> dict[str, object]:
    return {
        "specversion": "1.0",
        "id": "1",
        "source": "ci",
        "type": "koder.deploy.succeeded",
        "product": "checkout",
        "time": "2026-04-07T16:30:00.5+02:00",
        "data": {"version": "1.4.2"},
    } | changes


@pytest.fixture
def store() -> MemoryEvents:
    return MemoryEvents()


@pytest.fixture
async def client(store: MemoryEvents) -> AsyncIterator[Client]:
    app = web.Application()
    app.router.add_post(PATH, ingest_handler(store, TOKEN, FixedClock(), MAX_BYTES))
    app.router.add_post("/down", ingest_handler(Outage(), TOKEN, FixedClock()))
    async with TestClient(TestServer(app)) as client:
        yield client


async def post(
    client: Client, body: object, headers: dict[str, str] = ONE, path: str = PATH
) -> tuple[int, dict[str, object]]:
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    async with client.post(path, data=data, headers=headers) as response:
        return response.status, await response.json()


@pytest.mark.parametrize("unset", ["0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", None])
async def test_an_event_without_a_set_time_has_the_time_of_receipt(
    client: Client, store: MemoryEvents, unset: str | None
) -> None:
    status, _ = await post(client, an_event(time=unset))

    assert status == 200
    assert [event.at for event in store.rows.values()] == [NOW]


async def refused(client: Client, body: object, headers: dict[str, str] = ONE) -> tuple[int, str]:
    status, answer = await post(client, body, headers)
    error = answer["error"]
    assert isinstance(error, dict)
    assert error["message"]
    return status, str(error["code"])


async def test_one_event_is_stored(client: Client, store: MemoryEvents) -> None:
    assert await post(client, an_event()) == (200, {"added": 1, "known": 0})
    assert list(store.rows.values()) == [
        IngestedEvent(
            id="1",
            source="ci",
            type="koder.deploy.succeeded",
            product="checkout",
            at=datetime(2026, 4, 7, 14, 30, 0, 500000, tzinfo=UTC),
            data={"version": "1.4.2"},
        )
    ]


async def test_a_repeated_event_is_known(client: Client, store: MemoryEvents) -> None:
    await post(client, an_event())
    assert await post(client, an_event()) == (200, {"added": 0, "known": 1})
    assert len(store.rows) == 1


async def test_a_batch_is_stored_each_event_once(client: Client, store: MemoryEvents) -> None:
    batch = [an_event(), an_event(id="2"), an_event()]
    assert await post(client, batch, BATCH) == (200, {"added": 2, "known": 1})
    assert len(store.rows) == 2


async def test_an_empty_batch_is_accepted(client: Client) -> None:
    assert await post(client, [], BATCH) == (200, {"added": 0, "known": 0})


@pytest.mark.parametrize("body", [an_event(), [an_event()]])
async def test_plain_json_is_one_event_or_a_batch(client: Client, body: object) -> None:
    assert await post(client, body, PLAIN) == (200, {"added": 1, "known": 0})


@pytest.mark.parametrize("time", NO_INSTANTS, ids=str)
async def test_an_event_without_a_readable_time_happened_at_its_receipt(
    client: Client, store: MemoryEvents, time: object
) -> None:
    await post(client, json.dumps(an_event(time=time)).encode())
    (event,) = store.rows.values()
    assert event.at == NOW


async def test_the_log_names_the_unreadable_field(client: Client) -> None:
    with capture_logs() as logged:
        await post(client, an_event(time="yesterday"))
    assert [one["fields"] for one in logged if "fields" in one] == [["time"]]


async def test_a_product_may_be_a_number(client: Client, store: MemoryEvents) -> None:
    await post(client, an_event(product=404))
    (event,) = store.rows.values()
    assert event.product == "404"


@pytest.mark.parametrize(
    ("changes", "product"),
    [
        ({"product": "a", "data": {"product": "b"}, "subject": "c"}, "a"),
        ({"product": "", "data": {"product": "b"}, "subject": "c"}, "b"),
        ({"product": "", "data": {"product": 7}, "subject": "c"}, "c"),
    ],
)
async def test_the_product_is_the_nearest_named_one(
    client: Client, store: MemoryEvents, changes: dict[str, object], product: str
) -> None:
    await post(client, an_event(**changes))
    (event,) = store.rows.values()
    assert event.product == product


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x"],
)
async def test_without_the_token_nothing_is_accepted(
    client: Client, store: MemoryEvents, authorization: str
) -> None:
    headers = ONE | {"Authorization": authorization}
    assert await refused(client, an_event(), headers) == (401, "unauthorized")
    assert not store.rows


async def test_a_token_refusal_names_the_scheme(client: Client) -> None:
    async with client.post(PATH, data=b"{}") as response:
        assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("content_type", ["text/plain", "application/xml", "multipart/form-data"])
async def test_another_media_type_is_refused(client: Client, content_type: str) -> None:
    headers = AUTH | {"Content-Type": content_type}
    assert await refused(client, an_event(), headers) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"", ONE),
        (b"{", ONE),
        (b'"\\ud800"', ONE),
        (b"[" * 3000, ONE),
        (an_event(source="\U0001f600" * 700), ONE),
        (b"null", ONE),
        ([an_event()], ONE),
        (an_event(), BATCH),
        (an_event(specversion="0.3"), ONE),
        (an_event(id=""), ONE),
        (an_event(id=7), ONE),
        (an_event(source=None), ONE),
        (an_event(type=""), ONE),
        (an_event(data=["no object"]), ONE),
        (an_event(product="", subject=""), ONE),
    ],
)
async def test_an_invalid_event_is_refused(
    client: Client, store: MemoryEvents, body: object, headers: dict[str, str]
) -> None:
    assert await refused(client, body, headers) == (400, "invalid")
    assert not store.rows


@pytest.mark.parametrize("odd", [*ODD, '{"specversion": "1.0", "id": ""}'])
async def test_a_batch_keeps_its_valid_events_and_describes_the_invalid_ones(
    client: Client, store: MemoryEvents, odd: str
) -> None:
    sound = orjson.dumps(an_event()).decode()
    status, answer = await post(client, f"[{sound}, {odd}, {odd}]".encode(), BATCH)
    assert status == 200
    assert (answer["added"], answer["known"], answer["invalid"]) == (1, 0, 2)
    problems = answer["problems"]
    assert isinstance(problems, list)
    assert [problem.split(": ")[0] for problem in problems] == ["event 1", "event 2"]
    assert [event.product for event in store.rows.values()] == ["checkout"]


async def test_a_batch_without_a_valid_event_is_refused_with_the_first_problem(
    client: Client, store: MemoryEvents
) -> None:
    status, answer = await post(client, [an_event(id=""), None], BATCH)
    assert (status, "event 0: id" in str(answer)) == (400, True)
    assert not store.rows


async def test_problems_of_a_batch_are_counted_beyond_the_described_ones(
    client: Client,
) -> None:
    _status, answer = await post(client, [an_event(), *[7] * 300], BATCH)
    problems = answer["problems"]
    assert isinstance(problems, list)
    assert (answer["invalid"], len(problems)) == (300, 100)


async def test_a_refusal_does_not_echo_the_request(client: Client) -> None:
    _, answer = await post(client, an_event(time="canary-secret"))
    assert "canary-secret" not in str(answer)


async def test_an_oversized_body_is_refused(client: Client, store: MemoryEvents) -> None:
    big = an_event(data={"text": "x" * MAX_BYTES})
    assert await refused(client, big) == (413, "too_large")
    assert not store.rows


async def test_an_oversized_body_without_a_length_is_refused(client: Client) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b'{"a":"'
        yield b"x" * MAX_BYTES

    async with client.post(PATH, data=chunks(), headers=ONE) as response:
        assert response.status == 413


async def test_an_oversized_unpacked_body_is_refused(client: Client) -> None:
    packed = gzip.compress(b"[" + b" " * MAX_BYTES * 10 + b"]")
    assert len(packed) < MAX_BYTES
    headers = BATCH | {"Content-Encoding": "gzip"}
    assert await refused(client, packed, headers) == (413, "too_large")


async def test_an_endless_body_times_out(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "READ_TIMEOUT_S", 0.05)
    answered = asyncio.Event()

    async def stalls() -> AsyncIterator[bytes]:
        yield b"{"
        await answered.wait()

    async with client.post(PATH, data=stalls(), headers=ONE) as response:
        answered.set()
        assert response.status == 408


async def test_an_outage_asks_for_a_retry(client: Client) -> None:
    async with client.post("/down", data=orjson.dumps(an_event()), headers=ONE) as response:
        answer = await response.json()
        assert (response.status, response.headers["Retry-After"]) == (503, "5")
        assert answer["error"]["code"] == "unavailable"


def test_without_a_token_there_is_no_handler(store: MemoryEvents) -> None:
    with pytest.raises(ValueError, match="token"):
        ingest_handler(store, "", FixedClock())
