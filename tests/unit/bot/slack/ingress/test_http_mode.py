"""`POST /slack/events`: foreign requests go no further, and never cause a 500."""

import asyncio
import hashlib
import hmac
import io
import json
import logging
import time
from collections.abc import AsyncIterator
from urllib.parse import urlencode

import pytest
from aiohttp import ClientResponse, web
from aiohttp.test_utils import TestClient, TestServer

from bot.ports.failures import StorageUnavailable
from bot.slack.ingress import http_mode
from bot.slack.ingress.http_mode import PATH, create_http_handler
from bot.slack.listeners import replies
from bot.slack.listeners.ports import IngressSettings
from bot.web.server import MAX_BODY_BYTES
from tests.slack_ingress import IDENTITY, Ingress, command, mention, pressed, proposal

SECRET = "signing-secret-of-the-test"
Client = TestClient[web.Request, web.Application]


@pytest.fixture
def ingress() -> Ingress:
    return Ingress(IngressSettings(IDENTITY, signing_secret=SECRET))


@pytest.fixture
async def client(ingress: Ingress) -> AsyncIterator[Client]:
    app = web.Application(client_max_size=MAX_BODY_BYTES)
    app.router.add_post(PATH, create_http_handler(ingress.app(), SECRET))
    async with TestClient(TestServer(app)) as client:
        yield client


def signed(
    body: bytes, at: float | None = None, content_type: str = "application/json"
) -> dict[str, str]:
    timestamp = str(int(time.time() if at is None else at))
    base = b"v0:" + timestamp.encode() + b":" + body
    return {
        "content-type": content_type,
        "x-slack-request-timestamp": timestamp,
        "x-slack-signature": "v0=" + hmac.new(SECRET.encode(), base, hashlib.sha256).hexdigest(),
    }


async def post(client: Client, body: bytes, **headers: str) -> ClientResponse:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return await client.post(PATH, data=body, headers={**signed(body), **given})


def body_of(payload: object) -> bytes:
    return json.dumps(payload).encode()


async def test_a_signed_event_starts_a_turn(client: Client, ingress: Ingress) -> None:
    response = await post(client, body_of(mention()))
    assert response.status == 200
    assert list(ingress.workflows.turns) == ["turn:T1:C1:100.1"]


async def test_a_failed_start_is_500_and_its_redelivery_is_one_turn(
    client: Client, ingress: Ingress
) -> None:
    ingress.workflows.failures.append(StorageUnavailable("locked"))
    body = body_of(mention())
    first = await post(client, body)
    second = await post(client, body, x_slack_retry_num="1", x_slack_retry_reason="http_error")
    await ingress.background.drain(1.0)
    assert (first.status, second.status) == (500, 200)
    assert len(ingress.workflows.turns) == 1
    assert ingress.whispers.texts == [replies.NOT_STARTED]


async def test_a_replayed_body_is_the_same_turn(client: Client, ingress: Ingress) -> None:
    body = body_of(mention())
    statuses = [(await post(client, body)).status for _ in range(3)]
    assert statuses == [200, 200, 200]
    assert len(ingress.workflows.turns) == 1


async def test_url_verification_is_answered(client: Client) -> None:
    response = await post(client, body_of({"type": "url_verification", "challenge": "c-1"}))
    assert (response.status, await response.json()) == (200, {"challenge": "c-1"})


async def test_url_verification_is_answered_only_when_signed(client: Client) -> None:
    body = body_of({"type": "url_verification", "challenge": "c-1"})
    response = await post(client, body, x_slack_signature="v0=" + "0" * 64)
    assert response.status == 401


async def test_a_signed_form_reaches_its_listener(client: Client, ingress: Ingress) -> None:
    ingress.proposals.rows[proposal().id] = proposal()
    form = urlencode({"payload": json.dumps(pressed("proposal:confirm", "p-1"))}).encode()
    kind = "application/x-www-form-urlencoded"
    response = await client.post(PATH, data=form, headers=signed(form, content_type=kind))
    assert response.status == 200
    assert len(ingress.workflows.decisions) == 1


async def test_a_command_is_answered_in_the_response(client: Client) -> None:
    form = urlencode({name: str(value) for name, value in command("help").items()}).encode()
    kind = "application/x-www-form-urlencoded"
    response = await client.post(PATH, data=form, headers=signed(form, content_type=kind))
    answer = await response.json()
    assert (response.status, answer["response_type"]) == (200, "ephemeral")


BAD_HEADERS: list[dict[str, str]] = [
    {"x-slack-signature": "v0=" + "0" * 64},
    {"x-slack-signature": "v1=" + "0" * 64},
    {"x-slack-signature": "v0=" + "g" * 64},
    {"x-slack-signature": ""},
    {"x-slack-signature": "v0=é"},
    {"x-slack-request-timestamp": "abc"},
    {"x-slack-request-timestamp": "1e9"},
    {"x-slack-request-timestamp": "-1"},
    {"x-slack-request-timestamp": ""},
    {"x-slack-request-timestamp": "9" * 400},
    {"x-slack-request-timestamp": "9" * 5_000},
    {"x-slack-request-timestamp": "١٧٠٠٠٠٠٠٠٠"},
    {"x-slack-request-timestamp": "0"},
]


@pytest.mark.parametrize("bad", BAD_HEADERS, ids=lambda bad: str(bad)[:60])
async def test_a_malformed_signature_gives_401(
    client: Client, ingress: Ingress, bad: dict[str, str]
) -> None:
    body = body_of(mention())
    response = await client.post(PATH, data=body, headers={**signed(body), **bad})
    assert response.status == 401
    assert ingress.workflows.turns == {}


@pytest.mark.parametrize("missing", ["x-slack-signature", "x-slack-request-timestamp"])
async def test_a_missing_header_gives_401(client: Client, missing: str) -> None:
    body = body_of(mention())
    headers = signed(body)
    del headers[missing]
    assert (await client.post(PATH, data=body, headers=headers)).status == 401


@pytest.mark.parametrize(("age_s", "status"), [(-310, 401), (-290, 200), (290, 200), (310, 401)])
async def test_a_timestamp_may_be_off_by_five_minutes(
    client: Client, age_s: int, status: int
) -> None:
    body = body_of(mention())
    headers = signed(body, at=time.time() - age_s)
    assert (await client.post(PATH, data=body, headers=headers)).status == status


async def test_a_body_with_a_wrong_signature_gives_401_and_is_not_logged(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        response = await post(
            client, body_of(mention("canary-text")), x_slack_signature="v0=" + "1" * 64
        )
    assert response.status == 401
    assert "canary-text" not in caplog.text


@pytest.mark.parametrize("user", ["U1", "UBOT"])
async def test_an_accepted_body_is_not_logged(
    client: Client, caplog: pytest.LogCaptureFixture, user: str
) -> None:
    with caplog.at_level(logging.DEBUG):
        await post(client, body_of(mention("<@UBOT> canary-text", user=user)))
    assert "canary-text" not in caplog.text


@pytest.mark.parametrize(
    "body",
    [
        b"\xff\xfe",
        b'{"type": "event_callback"',
        b"[" * 10_000,
        b'{"a":' * 10_000,
        b"[1]",
        b"7",
    ],
    ids=["utf-8", "cut", "deep-list", "deep-object", "list", "number"],
)
async def test_a_signed_body_that_is_not_an_object_is_refused_without_a_500(
    client: Client, body: bytes
) -> None:
    assert (await post(client, body)).status in {400, 401}


async def test_a_form_with_two_payloads_is_refused(client: Client, ingress: Ingress) -> None:
    one = json.dumps(pressed("proposal:confirm", "p-1"))
    form = urlencode([("payload", one), ("payload", one)]).encode()
    kind = "application/x-www-form-urlencoded"
    response = await client.post(PATH, data=form, headers=signed(form, content_type=kind))
    assert response.status == 400


async def test_a_large_body_is_refused_before_it_is_read(client: Client) -> None:
    body = io.BytesIO(b"x" * (MAX_BODY_BYTES + 1))
    assert (await client.post(PATH, data=body, headers=signed(b""))).status == 413


async def test_a_large_body_without_a_length_is_refused(client: Client) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(MAX_BODY_BYTES // 65_536 + 1):
            yield b"x" * 65_536

    response = await client.post(PATH, data=chunks(), headers=signed(b""))
    assert response.status == 413


async def test_an_incomplete_body_is_refused(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_mode, "_READ_TIMEOUT_S", 0.05)

    async def never() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    async with asyncio.timeout(5):
        response = await client.post(PATH, data=never(), headers=signed(b"{"))
    assert response.status == 413


async def test_bolts_own_headers_are_not_accepted_from_outside(
    client: Client, ingress: Ingress
) -> None:
    response = await post(client, body_of(mention()), x_slack_bolt_lazy_only="1")
    assert response.status == 200
    assert len(ingress.workflows.turns) == 1


def test_an_empty_secret_has_no_handler(ingress: Ingress) -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        create_http_handler(ingress.app(), " ")
