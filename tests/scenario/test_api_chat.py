"""The chat API of a running bot: questions, streams, resumption, stops, decisions, and privacy."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import aiohttp
import orjson
import pytest
import pytest_asyncio

from bot.actions.decide import ExpirySweep
from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.seeds import RESPONDER, SECOND_RESPONDER
from bot.domain.callers import CallerKind
from bot.domain.session import Ask
from bot.engine.engine import Engine
from bot.ports.failures import StorageUnavailable
from bot.store.tables import proposals
from bot.web.api import sessions
from tests.fakes.control_plane_server import Received, says
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_api import Api, Told, caller, token_for
from tests.fixtures_service import INGEST_TOKEN, shared_stage
from tests.held_connection import writing
from tests.slack_request_gate import SlackRequestGate
from tests.stage import CONFIRM, Stage, question_of, results, turn_of

__all__ = ["shared_stage"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

SETTINGS = {
    "roles": {"lead": {"users": ["UNOBODY"]}},
    "admins": {"roles": ["lead"]},
    "channels": [
        {"match": "incident-*", "products": ["checkout", "payments"], "confirm": ["responder"]},
        {"match": "quiet-*", "ask": ["lead"], "confirm": ["responder"]},
    ],
}
PROPOSAL = {
    "action": "rollback-deploy",
    "product": "checkout",
    "params": {"version": "v2.3.7"},
    "rationale": "p99 rose with the deploy",
}
LOGS = {"product": "checkout", "time_range": "last 30m"}


def SCRIPT(request: Recorded) -> Round:  # noqa: N802 - what the shared fixture looks for
    """Look at logs and say so; propose once where that is asked for; go on for ever where that is."""
    asked = question_of(request)
    if "for ever" in asked:
        return Round(
            text=("Still looking ", "at it all ", "and on. "), hold=asyncio.Event(), hold_at=3
        )
    if results(request):
        return Round(text=("I have ", "looked [E1]. ", "The pool is full."))
    if "propose" in asked:
        # Asked in Slack each test has an order of its own: of equal ones a channel has one open.
        version = next((word for word in asked.split() if word.startswith("v2.")), "v2.3.7")
        wanted = {**PROPOSAL, "params": {"version": version}}
        return Round(calls=(Call("core__propose_action", wanted),))
    return Round(calls=(Call("core__get_logs", LOGS),))


@pytest_asyncio.fixture(loop_scope="module")
async def stage(shared_stage: Stage) -> Stage:
    await shared_stage.close_open()
    shared_stage.plane.received.clear()
    shared_stage.plane.post = says(200, {"rolled_back_to": "v2.3.7"})
    return shared_stage


@pytest_asyncio.fixture(loop_scope="module")
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest_asyncio.fixture(loop_scope="module")
async def alice(stage: Stage, http: aiohttp.ClientSession) -> Api:
    return await caller(stage, http, "alice", "responder")


@pytest_asyncio.fixture(loop_scope="module")
async def lead(stage: Stage, http: aiohttp.ClientSession) -> Api:
    return await caller(stage, http, "lead", "lead")


def _names(events: Sequence[Told]) -> list[str]:
    return list(dict.fromkeys(event.name for event in events))


def _text(events: Sequence[Told]) -> str:
    text = ""
    for event in events:
        text = event.data["text"] if event.name == "reset" else text
        text += event.data["text"] if event.name == "text" else ""
    return text


def _orders(stage: Stage, proposal: str) -> list[Received]:
    """What the control plane got for it: orders of a race before may still be on their way."""
    return [r for r in stage.plane.received if r.headers["Idempotency-Key"] == proposal]


async def _proposed(api: Api) -> str:
    events = await api.ask(await api.open(), "propose a way out")
    return next(str(e.data["proposal_id"]) for e in events if e.name == "proposal")


async def test_a_question_is_answered_with_its_steps_claims_and_evidence(alice: Api) -> None:
    session = await alice.open()
    events = await alice.ask(session, "why is checkout slow?")

    assert _names(events)[:3] == ["question", "tool_start", "tool_end"]
    assert _names(events)[-2:] == ["claims", "done"]
    done = events[-1].data
    assert done["text"].startswith("I have looked")
    assert "The pool is full." in done["text"]
    assert done["evidence"][0]["number"] == "E1"
    assert done["text"].startswith(_text(events)[:8])
    path = f"/chat/v1/sessions/{session}/messages"
    status, read = await alice.call("GET", path)
    assert status == 200
    (message,) = read["messages"]
    assert (message["question"], message["text"]) == ("why is checkout slow?", done["text"])
    assert [tool["evidence"] for tool in message["tools"]] == ["E1"]
    status, found = await alice.call("GET", f"{path}/{message['id']}/evidence/E1")
    assert (status, found["tool"]) == (200, "core__get_logs")
    assert (await alice.call("GET", f"{path}/{message['id']}/evidence/E9"))[0] == 404


async def test_a_stream_resumes_after_the_last_event_id(alice: Api) -> None:
    session, path = await alice.open(), "/chat/v1/sessions/{}/messages"
    whole = await alice.ask(session, "why?", Idempotency_Key="k1")
    again = await alice.ask(session, "why?", Idempotency_Key="k1", Last_Event_ID=f"{whole[2].id}")
    assert again == whole[3:]
    assert await alice.ask(session, "why?", Idempotency_Key="k1") == whole

    status, told = await alice.call(
        "POST", path.format(session), {"text": "else?"}, Idempotency_Key="k1"
    )
    assert (status, told["error"]["code"]) == (409, "key_reused")
    message = whole[0].data["message_id"]
    follow = f"/chat/v1/sessions/{session}/events?message={message}"
    async with alice.stream("GET", follow, Last_Event_ID=f"{whole[-2].id}") as events:
        assert [each.name async for each in events] == ["done"]


async def test_a_long_conversation_is_cut_with_a_notice_and_its_events_continue(
    alice: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await alice.open()
    path = f"/chat/v1/sessions/{session}"
    told = await alice.ask(session, "why is checkout slow?")
    _, whole = await alice.call("GET", f"{path}/messages")
    monkeypatch.setattr(sessions, "_PAGE", 2)
    monkeypatch.setattr(sessions, "_MOST_EVENTS", 2)

    _, cut = await alice.call("GET", f"{path}/messages")

    assert (whole["goes_on"], cut["goes_on"]) == (False, True)
    assert (whole["last_event_id"], cut["last_event_id"]) == (len(told), 2)
    (question,) = cut["messages"]
    follow = f"{path}/events?message={question['id']}"
    async with alice.stream("GET", follow, Last_Event_ID="2") as events:
        assert [each async for each in events] == told[2:]


async def test_a_disconnected_reader_stops_no_turn(alice: Api) -> None:
    session = await alice.open()
    path = f"/chat/v1/sessions/{session}/messages"
    status, told = await alice.call("POST", path, {"text": "why?"}, Accept="application/json")
    assert status == 200
    follow = f"/chat/v1/sessions/{session}/events"
    async with alice.stream("GET", follow) as events:
        async for event in events:
            assert event.data["message_id"] == told["message_id"]
            break
    async with alice.stream("GET", f"{follow}?message={told['message_id']}") as events:
        assert (await _last(events)).name == "done"


async def _last(events: AsyncIterator[Told]) -> Told:
    return [each async for each in events][-1]


async def test_a_stopped_answer_keeps_its_findings(alice: Api) -> None:
    session = await alice.open()
    path = f"/chat/v1/sessions/{session}"
    async with alice.stream("POST", f"{path}/messages", {"text": "look for ever"}) as events:
        async for event in events:
            if event.name == "text":
                assert (await alice.call("POST", f"{path}/stop"))[1] == {"stopping": True}
            if event.name == "done":
                assert event.data["end"] == "stopped"
                assert "Still looking" in event.data["text"]
    assert (await alice.call("POST", f"{path}/stop"))[1] == {"stopping": False}


async def test_a_question_that_failed_to_start_starts_when_it_is_sent_again(
    stage: Stage, alice: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, path = await alice.open(), "/chat/v1/sessions/{}/messages"
    start, failures = Engine.start_turn, iter([True])

    async def flaky(engine: Engine, ask: Ask) -> None:
        if next(failures, False):
            raise StorageUnavailable("gone")
        await start(engine, ask)

    monkeypatch.setattr(Engine, "start_turn", flaky)
    body, key = {"text": "why?"}, {"Idempotency_Key": "k"}
    status, told = await alice.call("POST", path.format(session), body, **key)
    assert (status, told["error"]["code"]) == (503, "not_started")
    events = await alice.ask(session, "why?", **key)
    assert [_names(events)[0], _names(events)[-1]] == ["question", "done"]


async def test_the_api_rate_limits_a_fast_caller(stage: Stage, http: aiohttp.ClientSession) -> None:
    hasty = await caller(stage, http, "hasty", "responder")
    session = await hasty.open()
    path = f"/chat/v1/sessions/{session}/messages"
    last = {"text": "why?"}, {"Accept": "application/json", "Idempotency_Key": "k"}
    statuses = [(await hasty.call("POST", path, last[0], **last[1]))[0] for _ in range(21)]
    assert statuses == [200] * 20 + [429]


async def test_only_the_caller_and_admins_can_read_a_conversation(
    stage: Stage, alice: Api, lead: Api, http: aiohttp.ClientSession
) -> None:
    session = await alice.open()
    await alice.ask(session, "why?")
    mallory = await caller(stage, http, "mallory", "responder")
    operator = Api(http, alice.port, INGEST_TOKEN)
    for path in ("", "/messages", "/events"):
        assert (await mallory.call("GET", f"/chat/v1/sessions/{session}{path}"))[0] == 404
    ask = (f"/chat/v1/sessions/{session}/messages", {"text": "and?"})
    assert (await mallory.call("POST", *ask))[0] == 404
    assert (await mallory.call("POST", f"/chat/v1/sessions/{session}/stop"))[0] == 404
    assert session not in str(await mallory.call("GET", "/chat/v1/sessions"))
    for admin in (lead, operator):
        assert (await admin.call("GET", f"/chat/v1/sessions/{session}/messages"))[0] == 200
        assert session in str(await admin.call("GET", "/chat/v1/sessions"))
        assert (await admin.call("POST", *ask))[0] == 403
    read = stage.query(
        "SELECT actor FROM audit WHERE kind = 'admin.command' AND body LIKE ?", f"%{session}%"
    )
    assert sorted(row[0] for row in read) == ["@person/lead", "@service/api_token"]


@pytest.mark.parametrize(
    ("roles", "channel", "code"),
    [
        (("responder",), "general", "no_such_channel"),
        (("responder",), "quiet-one", "forbidden"),
        ((), "incident-checkout", "forbidden"),
        (("responder",), "@direct", "invalid"),
        (("responder",), "", "invalid"),
    ],
)
async def test_asking_needs_a_rule_and_one_of_its_roles(
    stage: Stage, http: aiohttp.ClientSession, roles: tuple[str, ...], channel: str, code: str
) -> None:
    api = await caller(stage, http, f"asker-{len(roles)}", *roles)
    status, told = await api.call("POST", "/chat/v1/sessions", {"channel": channel})

    assert (status in (400, 403), told["error"]["code"]) == (True, code)


async def test_a_revoked_token_is_refused_at_once_and_its_streams_end(
    stage: Stage, alice: Api, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.web.api.streams.CHECK_S", 0.0)
    monkeypatch.setattr("bot.web.api.streams.POLL_S", 0.02)
    leaver = await caller(stage, http, "leaver", "responder")
    session = await leaver.open()
    callers = stage.service.base.stores.callers
    async with leaver.stream("GET", f"/chat/v1/sessions/{session}/events") as events:
        for entry in await callers.tokens():
            if entry.caller.name == "leaver":
                assert await callers.revoke(entry.id, "cli:test")
        async with asyncio.timeout(5):
            assert [each async for each in events] == []
    assert (await leaver.call("GET", "/api/v1/me"))[0] == 401
    assert (await alice.call("GET", "/api/v1/me"))[0] == 200


async def test_a_person_with_the_role_confirms_and_the_conversation_is_reported(
    stage: Stage, alice: Api
) -> None:
    session = await alice.open()
    events = await alice.ask(session, "propose a way out")
    proposal = next(e.data["proposal_id"] for e in events if e.name == "proposal")
    status, row = await alice.call("GET", f"/api/v1/proposals/{proposal}")
    assert (status, row["state"], row["params"]) == (200, "pending", {"version": "v2.3.7"})

    status, told = await alice.call("POST", f"/api/v1/proposals/{proposal}/confirm", {})
    assert (status, told["result"]) == (200, "won")
    states = []
    async with alice.stream("GET", f"/chat/v1/sessions/{session}/events") as follow:
        async for event in follow:
            states += [event.data["state"]] if event.name == "proposal" else []
            if event.name == "notice" and not event.data["message_id"]:
                break
    assert states[0] == "pending"
    assert "confirmed" in states
    (order,) = _orders(stage, proposal)
    assert orjson.loads(order.body)["confirmed_by"] == "@person/alice"
    for wish, result in (("reject", "lost"), ("confirm", "won")):  # a request may be sent again
        status, told = await alice.call("POST", f"/api/v1/proposals/{proposal}/{wish}", {})
        assert (status, told["result"]) == (200, result)
    assert len(_orders(stage, proposal)) == 1


async def test_a_caller_without_the_role_cannot_decide(
    stage: Stage, alice: Api, lead: Api, http: aiohttp.ClientSession
) -> None:
    proposal = await _proposed(alice)
    service = Api(
        http,
        alice.port,
        await token_for(stage, "ci", "responder", "lead", kind=CallerKind.SERVICE),
    )
    operator = Api(http, alice.port, INGEST_TOKEN)
    stranger = await caller(stage, http, "stranger")
    path = f"/api/v1/proposals/{proposal}/confirm"
    assert (await lead.call("POST", path, {}))[1]["error"]["code"] == "role"
    assert (await service.call("POST", path, {}))[1]["error"]["code"] == "service"
    assert (await operator.call("POST", path, {}))[1]["error"]["code"] == "service"
    assert (await stranger.call("POST", path, {}))[0] == 404
    assert _orders(stage, proposal) == []
    refused = stage.query("SELECT body FROM audit WHERE kind = 'click.refused'")
    assert len([row for row in refused if proposal in row[0]]) == 3


async def test_a_slack_user_keeps_their_identity_over_http(
    stage: Stage, http: aiohttp.ClientSession
) -> None:
    anna = await caller(stage, http, "anna", account=RESPONDER)
    me = (await anna.call("GET", "/api/v1/me"))[1]
    assert (me["user"], me["roles"]) == (RESPONDER, ["responder"])

    asked = await stage.ask("@kortex propose v2.1.1", RESPONDER)
    await stage.answer(asked)
    card = await stage.card(asked)
    (row,) = stage.query("SELECT id FROM proposals WHERE card_ts = ?", card.ts)
    status, told = await anna.call("POST", f"/api/v1/proposals/{row[0]}/reject", {"reason": "no"})
    assert (status, told["result"]) == (200, "won")
    assert told["proposal"]["decided_by"] == RESPONDER


class Away(SlackRequestGate):
    """Slack's front request_gate on a bad day."""

    def take(self, method: str, tier: int | None, channel: str) -> None:
        raise SlackRefused("internal_error")


async def test_a_slack_card_is_decided_with_a_cached_name_during_a_slack_outage(
    stage: Stage, alice: Api
) -> None:
    paths = []
    for what in ("v2.1.2", "v2.1.3"):
        asked = await stage.ask(f"@kortex propose {what}", stage.newcomer())
        await stage.answer(asked)
        (row,) = stage.query(
            "SELECT id FROM proposals WHERE card_ts = ?", (await stage.card(asked)).ts
        )
        paths.append(f"/api/v1/proposals/{row[0]}")
    request_gate = stage.workspace.request_gate
    stage.workspace.request_gate = Away()
    try:
        await stage.change("UPDATE channel_names SET read_at = read_at - 30000000")
        within, _ = await alice.call("POST", f"{paths[0]}/confirm", {})
        await stage.change("UPDATE channel_names SET read_at = read_at - 31000000")
        later, told = await alice.call("POST", f"{paths[1]}/confirm", {})
    finally:
        stage.workspace.request_gate = request_gate
    again, won = await alice.call("POST", f"{paths[1]}/reject", {"reason": "Slack is back"})

    assert (within, later, told["error"]["code"]) == (200, 503, "channel")
    assert "the channel's name cannot be read now" in told["error"]["message"]
    assert "so its approvers are unknown" in told["error"]["message"]
    assert (again, won["result"]) == (200, "won")


async def test_a_press_and_an_api_request_at_once_decide_exactly_once(
    stage: Stage, http: aiohttp.ClientSession
) -> None:
    bert = await caller(stage, http, "bert", "responder")
    asked = await stage.ask("@kortex propose v2.1.4", RESPONDER)
    await stage.answer(asked)
    card = await stage.card(asked)
    (row,) = stage.query("SELECT id FROM proposals WHERE card_ts = ?", card.ts)
    path = f"/api/v1/proposals/{row[0]}"
    (status, told), *_ = await asyncio.gather(
        bert.call("POST", f"{path}/reject", {}),
        stage.press(SECOND_RESPONDER, card, CONFIRM),
        bert.call("POST", f"{path}/reject", {}),
    )
    assert status == 200
    ended = stage.query(
        "SELECT kind FROM audit WHERE kind IN ('proposal.confirmed', 'proposal.rejected')"
        " AND body LIKE ?",
        f"%{row[0]}%",
    )
    assert len(ended) == 1
    assert (told["result"] == "won") == (ended[0][0] == "proposal.rejected")


async def test_a_confirmation_and_an_expiry_at_once_decide_exactly_once(
    stage: Stage, alice: Api
) -> None:
    proposal = await _proposed(alice)
    base = stage.service.base
    soon = await base.stores.database.now() + timedelta(milliseconds=8)
    async with writing(base.stores.database) as connection:
        await connection.execute(
            proposals.update().where(proposals.c.id == proposal).values(expires_at=soon)
        )
    sweep = ExpirySweep(base.stores.proposals, stage.service.engine)
    path = f"/api/v1/proposals/{proposal}/confirm"
    told = list[str]()
    while not told or told[-1] == "pending":
        answers = await asyncio.gather(
            *(alice.call("POST", path, {}) for _ in range(3)), *(sweep.run() for _ in range(3))
        )
        told += [each[1]["result"] for each in answers if isinstance(each, tuple)]

    (ended,) = stage.query(
        "SELECT kind FROM audit WHERE kind IN ('proposal.confirmed', 'proposal.expired')"
        " AND body LIKE ?",
        f"%{proposal}%",
    )
    assert ("won" in told) == (ended[0] == "proposal.confirmed")


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/llm/providers",
        "/api/v1/budget",
        "/api/v1/tools",
        "/api/v1/sessions",
        "/api/v1/audit?limit=5",
        "/api/v1/audit/state",
    ],
)
async def test_reports_are_for_admins(stage: Stage, alice: Api, lead: Api, path: str) -> None:
    operator = Api(lead.http, lead.port, INGEST_TOKEN)
    assert (await alice.call("GET", path))[1]["error"]["code"] == "forbidden"
    for admin in (lead, operator):
        status, told = await admin.call("GET", path)
        assert status == 200
        assert told


async def test_slack_activity_is_reported_with_names_and_links(
    stage: Stage, alice: Api, lead: Api
) -> None:
    asked = await stage.ask("@kortex propose v2.1.5", RESPONDER)
    await stage.answer(asked)
    card = await stage.card(asked)

    told = (await lead.call("GET", "/api/v1/sessions"))[1]["sessions"]
    proposals = (await alice.call("GET", "/api/v1/proposals"))[1]["proposals"]

    name = stage.workspace.roster.users[RESPONDER].name
    channel = f"https://kortex-local.slack.com/archives/{asked.channel}"
    (talk,) = [each for each in told if each["thread"] == asked.thread]
    assert (talk["channel_name"], talk["asker_name"]) == ("#incident-checkout", name)
    assert talk["thread_url"] == f"{channel}/p{asked.thread.replace('.', '')}"
    (row,) = [each for each in proposals if each["thread_url"].startswith(channel)]
    assert (row["channel"], row["asked_by_name"]) == ("#incident-checkout", name)
    assert card.ts.replace(".", "") in row["thread_url"]


async def test_the_audit_log_is_paged_and_verified(alice: Api, lead: Api) -> None:
    await alice.ask(await alice.open(), "why is checkout slow?")
    first = (await lead.call("GET", "/api/v1/audit?limit=2"))[1]
    second = (await lead.call("GET", f"/api/v1/audit?limit=2&after={first['last_seq']}"))[1]
    assert [e["seq"] for e in (*first["entries"], *second["entries"])] == [1, 2, 3, 4]
    state = (await lead.call("GET", "/api/v1/audit/state"))[1]
    assert (state["ok"], state["first_bad_seq"]) == (True, None)


@pytest.mark.parametrize("token", ["", "kortex_unknown", "eyJ.e30.", "é", "x" * 5_000])
async def test_a_report_requires_a_live_token(
    stage: Stage, http: aiohttp.ClientSession, token: str
) -> None:
    status, told = await Api(http, stage.service.http_port, token).call("GET", "/api/v1/me")

    assert (status, told["error"]["code"]) == (401, "unauthorized")


async def test_a_question_over_http_includes_what_was_carried_out_in_slack(
    stage: Stage, alice: Api
) -> None:
    asked = await stage.ask("@kortex propose a rollback to v2.9.1")
    await stage.answer(asked)
    await stage.press(RESPONDER, await stage.card(asked), CONFIRM)
    await stage.card(asked, "succeeded")

    told = []
    for channel in ("incident-checkout", "incident-payments"):
        session = await alice.open(channel)
        await alice.ask(session, "is it done?")
        told.append(str(turn_of(stage.models.requests[-1])[0]["content"]))

    assert "checkout …) in another thread of this channel: confirmed by " in told[0]
    assert "rollback-deploy of checkout was carried out from another channel at " in told[1]
    assert "v2.9.1" not in told[1]
