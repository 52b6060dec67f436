"""The routes for alerts: open with a configured secret, for its holders, for readable bodies."""

import json
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from bot.alerts.intake import IntakeCounts
from bot.app.rules import alert_wires
from bot.domain.alerts import Alert
from bot.ports.failures import StorageUnavailable
from bot.settings.model import Settings
from bot.web.alerts import PATH, alert_routes
from tests.fakes.alert_senders import SECRET, Sender, senders
from tests.fakes.set_clock import SetClock
from tests.unit.bot.web.test_webhooks import NOW
from tools.redactor import RedactionFailed

Client = TestClient[web.Request, web.Application]
NAMES = list(senders())


class AlertSink:
    """What the routes hand alerts to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.taken: list[Alert] = []
        self._error = error

    async def take(self, alerts: Sequence[Alert]) -> IntakeCounts:
        if self._error:
            raise self._error
        self.taken += alerts
        return IntakeCounts(len(alerts), 0)


@asynccontextmanager
async def served(sink: AlertSink) -> AsyncIterator[Client]:
    app = web.Application()
    wires = [each.wire for each in senders().values()]
    app.router.add_routes(alert_routes(wires, sink.take, SetClock(NOW)))
    async with TestClient(TestServer(app)) as client:
        yield client


@pytest.fixture(params=NAMES)
def sender(request: pytest.FixtureRequest) -> Sender:
    return senders()[request.param]


async def status(client: Client, sender: Sender, body: bytes, secret: str = SECRET) -> int:
    headers = sender.headers_of(body, secret)
    async with client.post(PATH + sender.wire.source, data=body, headers=headers) as answer:
        return answer.status


async def test_a_genuine_request_is_accepted(sender: Sender) -> None:
    sink = AlertSink()
    async with served(sink) as client:
        assert await status(client, sender, sender.body) == 200
    assert {each.source for each in sink.taken} == {sender.wire.source}


async def test_without_the_secret_nothing_is_read(sender: Sender) -> None:
    sink = AlertSink()
    async with served(sink) as client:
        assert await status(client, sender, b"[" * 1_500, "another") == 401
        assert await status(client, sender, sender.body, "another") == 401
    assert sink.taken == []


@pytest.mark.parametrize("body", [b"", b"[" * 1_500, b"null", b"\xff", b'{"a": "\\ud800"}'])
async def test_an_unreadable_body_is_refused(sender: Sender, body: bytes) -> None:
    sink = AlertSink()
    async with served(sink) as client:
        assert await status(client, sender, body) == 400
    assert sink.taken == []


async def test_an_oversized_body_is_refused_in_any_encoding(sender: Sender) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(50):
            yield b" " * (1 << 20)

    sink, path = AlertSink(), PATH + sender.wire.source
    packed = {"Content-Encoding": "deflate", **sender.headers_of(b"")}
    async with served(sink) as client:
        for data, headers in ((endless(), {}), (zlib.compress(bytes(8 << 20)), packed)):
            async with client.post(path, data=data, headers=headers) as answer:
                assert answer.status == 413
    assert sink.taken == []


@pytest.mark.parametrize("error", [StorageUnavailable("full"), RedactionFailed("bug")])
async def test_an_alert_that_cannot_be_stored_is_answered_with_a_retry(error: Exception) -> None:
    sender = senders()["alertmanager"]
    async with served(AlertSink(error)) as client:
        assert await status(client, sender, sender.body) == 503


@pytest.mark.parametrize(
    ("http", "open_to"),
    [
        ({}, []),
        ({"api_token": "x"}, []),
        ({"grafana_token": "x"}, ["grafana"]),
        ({"pagerduty_secret": "x", "cloudevents_token": "x"}, ["pagerduty", "cloudevents"]),
    ],
)
def test_a_route_exists_only_with_its_secret(http: dict[str, str], open_to: list[str]) -> None:
    settings = Settings.model_validate({"http": http})
    assert [wire.source for wire in alert_wires(settings)] == open_to


async def test_a_refusal_contains_no_value() -> None:
    sender = senders()["alertmanager"]
    body = json.dumps({"alerts": [{"status": "a secret value"}]}).encode()
    async with served(AlertSink()) as client:
        headers = sender.headers_of(body)
        async with client.post(PATH + "alertmanager", data=body, headers=headers) as answer:
            assert "a secret value" not in await answer.text()
