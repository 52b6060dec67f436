"""On-call rotas keep one contract; PagerDuty's wire is its documented one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given, settings
from hypothesis import strategies as st
from multidict import MultiMapping
from pydantic import JsonValue
from structlog.testing import capture_logs

from adapters.errors import AdapterError, BadAnswer, Refused, TimedOut, Unreachable
from adapters.on_call.json_endpoint import JsonOnCall
from adapters.on_call.pagerduty import PagerDutyOnCall
from adapters.on_call.port import MAX_PEOPLE, OnCall, steps, texts_at
from bot.app.live_config import role_members
from bot.demo.setup import ROTA_PATH, create_on_call
from bot.settings.model import Settings
from tests.fixtures_http import Handler, serving

TOKEN = "rota-token-Vx81"


def entry(email: str | None, schedule: str = "PI7DH85", user: str = "PXPGF42") -> JsonValue:
    person: dict[str, JsonValue] = {"id": user, "type": "user", "summary": "Earline Greenholt"}
    return {
        "escalation_policy": {"id": "PT20YPA", "type": "escalation_policy_reference"},
        "escalation_level": 2,
        "schedule": {"id": schedule, "type": "schedule_reference", "summary": "Daily Rotation"},
        "user": person | ({"email": email} if email else {"type": "user_reference"}),
        "start": "2026-11-21T06:00:00Z",
        "end": "2026-11-21T18:00:00Z",
    }


class PagerDuty:
    """Its `/oncalls`: one page of entries, a filter, and its errors."""

    def __init__(self, *entries: JsonValue) -> None:
        self.entries = list(entries)
        self.asked: list[MultiMapping[str]] = []

    async def oncalls(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.query)
        if request.headers.get("Authorization") != f"Token token={TOKEN}":
            error = {"message": "Invalid API key", "code": 2006}
            return web.json_response({"error": error}, status=401)
        assert request.path == "/oncalls"
        assert request.headers["Accept"] == "application/vnd.pagerduty+json;version=2"
        offset, limit = int(request.query["offset"]), int(request.query["limit"])
        told = self.entries[offset : offset + limit]
        more = len(self.entries) > offset + limit
        return web.json_response(
            {"oncalls": told, "limit": limit, "offset": offset, "more": more, "total": None}
        )


Open = Callable[..., Awaitable[OnCall]]


@pytest.fixture
async def rota() -> AsyncIterator[Open]:
    """A rota at that server."""
    async with AsyncExitStack() as stack:

        async def opened(handler: Handler, **settings: JsonValue) -> OnCall:
            url = await stack.enter_async_context(serving(handler))
            return configured(**{"url": url, "token": TOKEN, **settings})

        yield opened


def configured(**oncall: JsonValue) -> OnCall:
    """As `[roles.NAME.oncall]` makes it."""
    settings = Settings.model_validate({"roles": {"sre": {"oncall": oncall}}})
    made = role_members(settings)["sre"].on_call
    assert isinstance(made, JsonOnCall | PagerDutyOnCall)
    # The longest that may be configured is too short for a busy machine.
    return made if "timeout" in oncall else replace(made, timeout_s=30.0)


def pagerduty(rota: Open, server: PagerDuty, **more: JsonValue) -> Awaitable[OnCall]:
    return rota(server.oncalls, **{"kind": "pagerduty", "schedules": ["PI7DH85"], **more})


def answering(body: JsonValue | bytes, status: int = 200, token: str = TOKEN) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        assert request.headers["Authorization"] == f"Bearer {token}"
        text = body if isinstance(body, bytes) else orjson.dumps(body)
        return web.Response(body=text, status=status)

    return handler


def from_json(
    rota: Open, body: JsonValue | bytes, path: str = "[]", **more: Any
) -> Awaitable[OnCall]:
    return rota(answering(body, **more), kind="json", path=path)


async def test_pagerduty_returns_the_people_on_call_now(rota: Open) -> None:
    server = PagerDuty(entry("Mira@Example.com"), entry("jonas@example.com", user="P2"))
    assert await (await pagerduty(rota, server)).people() == {
        "mira@example.com",
        "jonas@example.com",
    }
    (asked,) = server.asked
    assert asked.getall("schedule_ids[]") == ["PI7DH85"]
    assert asked.getall("include[]") == ["users"]
    assert "since" not in asked


async def test_several_schedules_are_requested_at_once(rota: Open) -> None:
    server = PagerDuty(entry("a@x.io"), entry("b@x.io", "P222"), entry("a@x.io", "P222"))
    found = await (await pagerduty(rota, server, schedules=["P222", "PI7DH85"])).people()
    assert found == {"a@x.io", "b@x.io"}
    assert server.asked[0].getall("schedule_ids[]") == ["P222", "PI7DH85"]


async def test_people_on_call_for_another_schedule_never_count(rota: Open) -> None:
    server = PagerDuty(entry("mira@x.io"), entry("eve@x.io", "POTHER1"))
    assert await (await pagerduty(rota, server)).people() == {"mira@x.io"}


async def test_every_page_is_read(rota: Open) -> None:
    many = PagerDuty(*[entry("a@x.io")] * 100, entry("b@x.io"))
    assert await (await pagerduty(rota, many)).people() == {"a@x.io", "b@x.io"}
    assert [asked["offset"] for asked in many.asked] == ["0", "100"]


async def test_an_endless_list_is_a_failure(rota: Open) -> None:
    with pytest.raises(BadAnswer):
        await (await pagerduty(rota, PagerDuty(*[entry("a@x.io")] * 501))).people()


async def test_a_deleted_user_does_not_hide_the_other_users(rota: Open) -> None:
    server = PagerDuty(entry(None), entry("mira@x.io"))
    assert await (await pagerduty(rota, server)).people() == {"mira@x.io"}


async def test_entries_without_any_address_are_a_failure(rota: Open) -> None:
    with pytest.raises(BadAnswer, match="no e-mail address"):
        await (await pagerduty(rota, PagerDuty(entry(None)))).people()


async def test_a_wrong_token_is_refused_and_never_reported(rota: Open) -> None:
    wrong = "wrong-token-1"
    with pytest.raises(Refused) as refused:
        await (await pagerduty(rota, PagerDuty(), token=wrong)).people()
    assert wrong not in str(refused.value)


@pytest.mark.parametrize(
    ("body", "path", "people"),
    [
        (["mira@x.io", "U0RESPOND2"], "[]", {"mira@x.io", "U0RESPOND2"}),
        ({"data": {"oncall": "Mira@X.io"}}, "data.oncall", {"mira@x.io"}),
        ({"people": [{"email": "a@x.io"}, {"email": " b@x.io"}]}, "people[].email", {"a@x.io", "b@x.io"}),
        ([[{"id": "W1"}], [{"id": "U2"}]], "[][].id", {"W1", "U2"}),
        ({"people": []}, "people[].email", set()),
    ],
)  # fmt: skip
async def test_a_json_answer_is_read_along_the_path(
    rota: Open, body: JsonValue, path: str, people: set[str]
) -> None:
    assert await (await from_json(rota, body, path)).people() == people


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"people": [{"mail": "a@x.io"}]}, "people[].email"),
        ({"people": {"email": "a@x.io"}}, "people[].email"),
        ({"people": [{"email": None}]}, "people[].email"),
        (["mira@x.io", "mira"], "[]"),
        (["mira@x.io,eve@x.io"], "[]"),
        (["S0RESPOND1"], "[]"),
        ([f"p{n}@x.io" for n in range(MAX_PEOPLE + 1)], "[]"),
        (b"<html>", "[]"),
        (b"", "[]"),
        (b"[" * 3_000, "[]"),
        (b'["' + b"x" * 2_000_000 + b'"]', "[]"),
    ],
    ids=range(11),
)
async def test_a_partly_unreadable_answer_is_a_failure(
    rota: Open, body: JsonValue | bytes, path: str
) -> None:
    with pytest.raises(BadAnswer):
        await (await from_json(rota, body, path)).people()


@pytest.mark.parametrize("status", [302, 400, 401, 404, 429, 500, 503])
async def test_any_other_status_is_a_failure(rota: Open, status: int) -> None:
    with pytest.raises(AdapterError) as failure:
        await (await from_json(rota, ["mira@x.io"], status=status)).people()
    assert failure.value.status == status


async def test_a_silent_rota_times_out(rota: Open) -> None:
    async def silent(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"[")
        await asyncio.Event().wait()
        return response

    made = await rota(silent, kind="json", path="[]", timeout="50ms")
    with pytest.raises(TimedOut):
        await made.people()


async def test_an_unreachable_rota_is_a_failure(unused_tcp_port: int) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}/"
    with pytest.raises(Unreachable):
        await configured(kind="json", path="[]", url=url).people()


async def test_the_demos_rota_keeps_the_contract() -> None:
    async with TestServer(create_on_call(TOKEN, ["mira@example.com"])) as server:
        url = str(server.make_url(ROTA_PATH))
        rota = configured(kind="json", url=url, path="people[].email", token=TOKEN)
        assert await rota.people() == {"mira@example.com"}
        with pytest.raises(Refused):
            await configured(kind="json", url=url, path="people[].email").people()


def test_a_rota_is_a_value_and_hides_its_token() -> None:
    made = [configured(kind="json", path="[]", url="http://x/", token=TOKEN) for _ in range(2)]
    assert made[0] == made[1]
    assert TOKEN not in repr(made)


keys = st.text(alphabet="abc_-", min_size=1, max_size=3)


@settings(max_examples=30)
@given(st.lists(st.one_of(keys, st.just("[]")), max_size=4), st.integers(1, 3))
def test_a_path_finds_the_value_at_its_end(walk: list[str], width: int) -> None:
    text = "".join(part if part == "[]" else f".{part}" for part in walk).removeprefix(".")
    value: JsonValue = "mira@x.io"
    for part in reversed(walk):
        value = [value] * width if part == "[]" else {part: value}
    assert texts_at(value, walk) == {"mira@x.io"}
    assert steps(text or "[]") == tuple(walk or ["[]"])


@pytest.mark.parametrize("path", ["", ".", "a..b", "a[0]", "a[", "a b", "$.people", "[]a", "a.[]."])
def test_an_invalid_path_is_reported(path: str) -> None:
    with pytest.raises(ValueError, match="people"):
        steps(path)


@pytest.mark.parametrize("odd", [None, 7, "x", {}, 2**64, {"user": None}, {"user": {"id": 7}}])
async def test_an_unreadable_entry_adds_no_one_and_hides_no_one(rota: Open, odd: JsonValue) -> None:
    server = PagerDuty(odd, entry("mira@x.io"), odd)
    with capture_logs() as logged:
        assert await (await pagerduty(rota, server)).people() == {"mira@x.io"}
    assert [one["count"] for one in logged] == [2]


async def test_entries_that_are_all_unreadable_are_an_error_and_not_an_empty_rota(
    rota: Open,
) -> None:
    with pytest.raises(BadAnswer):
        await (await pagerduty(rota, PagerDuty(None, entry("eve@x.io", "POTHER1")))).people()


async def test_a_lone_surrogate_in_an_entry_hides_no_one(rota: Open) -> None:
    sound = orjson.dumps(entry("mira@x.io")).decode()
    body = f'{{"more": false, "oncalls": [{sound}, {{"user": {{"id": "\\ud800"}}}}]}}'.encode()

    async def answer(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=body)

    made = await rota(answer, kind="pagerduty", schedules=["PI7DH85"])
    assert await made.people() == {"mira@x.io"}


@pytest.mark.parametrize("odd", [None, 7, {}, "Mira"])
async def test_a_rota_in_json_with_an_odd_name_confirms_no_one(rota: Open, odd: JsonValue) -> None:
    with pytest.raises(BadAnswer):
        await (await from_json(rota, ["mira@x.io", odd])).people()
