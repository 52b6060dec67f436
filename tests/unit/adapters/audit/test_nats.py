"""Audit rows to NATS: every one acknowledged, or the batch is tried again."""

import asyncio
from typing import Any

import pytest
from pydantic import JsonValue

from adapters.audit import nats as audit_nats
from adapters.audit.nats import AuditNats, NatsLogin
from adapters.errors import AdapterError, BadAnswer, Refused, TimedOut, Unreachable
from adapters.http.egress import LocalHosts, confined_to
from bot.cli.check.storage import check_sinks
from bot.settings.model import Settings
from tests.fakes.nats_server import nats_server


def rows(count: int, body: str = "") -> list[dict[str, JsonValue]]:
    return [
        {"seq": n, "at": "2026-11-21T12:00:00+00:00", "kind": "tool.call", "mac": "ab" * 32,
         "body": {"words": body or "ü\r\nPING\r\n"}}
        for n in range(1, count + 1)
    ]  # fmt: skip


async def test_every_row_arrives_in_order_as_a_cloud_event_with_its_id() -> None:
    async with nats_server() as nats:
        await AuditNats(nats.url).send_events(rows(50))

    assert nats.ids == [f"{n}-{'ab' * 8}" for n in range(1, 51)]
    assert {m.subject for m in nats.received} == {"koder.admin.action"}
    first = nats.received[0].body
    assert (first["type"], first["subject"], first["data"]) == (
        "koder.admin.action",
        "tool.call",
        rows(1)[0],
    )


async def test_a_row_sent_again_has_the_same_id() -> None:
    async with nats_server() as nats:
        sink = AuditNats(nats.url)
        await sink.send_events(rows(1))
        await sink.send_events(rows(1))

    assert nats.ids[0] == nats.ids[1]


@pytest.mark.parametrize(
    ("login", "sent"),
    [
        (NatsLogin("kortex", "s3cret"), {"user": "kortex", "pass": "s3cret"}),
        (NatsLogin(token="t0ken"), {"auth_token": "t0ken"}),
        (None, {}),
    ],
    ids=["user", "token", "none"],
)
async def test_the_configured_login_is_sent(login: NatsLogin | None, sent: dict[str, str]) -> None:
    async with nats_server(password=sent.get("pass", "")) as nats:
        await AuditNats(nats.url, login=login).send_events(rows(1))

    secrets = {"user", "pass", "auth_token"}
    assert {k: v for k, v in nats.options[0].items() if k in secrets} == sent


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"stream": False}, BadAnswer, "no JetStream stream takes the subject"),
        ({"stream_full": True}, BadAnswer, "maximum bytes exceeded"),
        ({"password": "another"}, Refused, "(?i)authorization violation"),
        ({"breaks_after": 3}, Unreachable, "127.0.0.1"),
        ({"info": {"headers": True, "max_payload": 100}}, BadAnswer, "max_payload"),
        ({"greeting": b"HTTP/1.1 400 Bad Request\r\n"}, BadAnswer, "expecting INFO"),
        ({"greeting": b"INFO [1]\r\n"}, BadAnswer, "does not speak NATS"),
        ({"greeting": b"x" * 200_000}, BadAnswer, "does not speak NATS"),
    ],
)
async def test_a_partly_accepted_batch_is_a_failure(
    changes: dict[str, Any], kind: type[AdapterError], words: str
) -> None:
    async with nats_server(**changes) as nats:
        with pytest.raises(kind, match=words) as raised:
            await AuditNats(nats.url, login=NatsLogin("kortex", "s3cret-word")).send_events(rows(5))

    assert "s3cret-word" not in raised.value.message


@pytest.mark.parametrize(
    "login", [NatsLogin("kortex", "s3cret-word"), NatsLogin(token="s3cret-word"), None]
)
async def test_a_server_that_strips_tls_gets_no_login_and_no_row(login: NatsLogin | None) -> None:
    async with nats_server() as nats:
        with pytest.raises(Refused, match="offers no TLS"):
            await AuditNats(nats.url.replace("nats:", "tls:"), login=login).send_events(rows(1))
        await nats.gone.wait()

    assert "s3cret-word" not in str(nats.options)
    assert nats.received == []


async def test_rows_go_to_the_next_address_of_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    async def look_up(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        return [(0, 0, 0, "", (address, port)) for address in ("127.0.0.9", "127.0.0.1")]

    async with nats_server() as nats:
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
        await AuditNats(nats.url.replace("127.0.0.1", "nats.example")).send_events(rows(2))

    assert len(nats.received) == 2


async def test_without_a_stream_unacknowledged_rows_are_published() -> None:
    async with nats_server(info={"headers": True, "max_payload": 1 << 20}) as nats:
        await AuditNats(nats.url, "audit.kortex", acknowledged=False).send_events(rows(2))

    assert [m.subject for m in nats.received] == ["audit.kortex"] * 2


async def test_a_silent_server_times_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(audit_nats, "SEND_TIMEOUT_S", 0.05)
    async with nats_server(silent=True) as nats:
        with pytest.raises(TimedOut):
            await AuditNats(nats.url).send_events(rows(1))


async def test_a_cancelled_batch_leaves_no_connection() -> None:
    async with nats_server(silent=True) as nats:
        sending = asyncio.ensure_future(AuditNats(nats.url).send_events(rows(1)))
        async with asyncio.timeout(5):
            await nats.logged_in.wait()
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            await nats.gone.wait()


async def test_a_closed_port_is_unreachable() -> None:
    async with nats_server() as nats:
        url = nats.url
    with pytest.raises(Unreachable):
        await AuditNats(url).send_events(rows(1))


async def test_a_local_name_that_resolves_outside_is_refused_after_one_lookup(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = ["8.8.8.8", "127.0.0.1"]

    async def look_up(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        return [(0, 0, 0, "", (answers.pop(0), port))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
    with confined_to(LocalHosts(["nats.example"])), pytest.raises(Refused, match=r"8\.8\.8\.8"):
        await AuditNats("nats://nats.example").send_events(rows(1))
    assert answers == ["127.0.0.1"]


async def test_a_confined_process_sends_nothing() -> None:
    with confined_to(LocalHosts()), pytest.raises(Refused, match=r"nats\.example"):
        await AuditNats("nats://nats.example").send_events(rows(1))


@pytest.mark.parametrize(
    ("url", "subject"),
    [
        ("http://nats.example", "a"),
        ("nats://", "a"),
        ("nats://me:secret@nats.example", "a"),
        ("nats://nats.example", "a.*"),
        ("nats://nats.example", "a b"),
        ("nats://nats.example", "a\r\nPUB b"),
        ("nats://nats.example", ""),
    ],
)
def test_an_invalid_address_or_subject_is_refused_at_start(url: str, subject: str) -> None:
    with pytest.raises(ValueError, match="needs a"):
        AuditNats(url, subject)


@pytest.mark.parametrize(
    ("password", "told"),
    [("", (True, "on koder.admin.action")), ("another", (False, "authorization violation"))],
)
async def test_check_logs_in_and_publishes_nothing(password: str, told: tuple[bool, str]) -> None:
    async with nats_server(password=password) as nats:
        settings = Settings.model_validate({"audit": {"events_nats": nats.url}})
        (finding,) = await check_sinks(settings, 5.0)

    assert (finding.ok, told[1] in finding.detail.lower()) == (told[0], True)
    assert nats.received == []


async def test_check_omits_sinks_that_are_not_configured() -> None:
    assert await check_sinks(Settings(), 5.0) == []
