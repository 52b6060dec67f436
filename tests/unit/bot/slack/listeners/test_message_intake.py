"""Which messages become turns, and when Slack is acknowledged."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from bot.domain.audit import AuditKind
from bot.domain.ids import Place
from bot.domain.session import Ask, Session
from bot.ports.failures import StorageUnavailable
from bot.slack.listeners import replies
from bot.slack.listeners.ports import IngressSettings
from tests.fakes.redactor import FakeRedactor
from tests.slack_ingress import (
    BOT,
    CHANNEL,
    IDENTITY,
    Ingress,
    Payload,
    deliver,
    event,
    mention,
    said,
)
from tools.attached import AttachedFile

THREAD: dict[str, Any] = {"thread_ts": "100.1"}


@pytest.fixture
def ingress() -> Ingress:
    return Ingress()


def only(ingress: Ingress) -> Ask:
    (ask,) = ingress.workflows.turns.values()
    return ask


async def test_a_mention_starts_a_turn_in_its_own_thread(ingress: Ingress) -> None:
    response = await ingress.send(mention())
    ask = only(ingress)
    assert response.status == 200
    assert ask.text == "why is checkout slow?"
    assert ask.turn_id == "turn:T1:C1:100.1"
    assert ask.place.thread_ts == "100.1"
    assert ingress.api.calls == []  # the channel's name is the turn's to ask for
    assert (ask.asker.team, ask.asker.user) == ("T1", "U1")


async def test_a_question_is_redacted_before_it_is_stored(ingress: Ingress) -> None:
    await ingress.send(mention(text=f"<@{BOT}> is SECRET-abc123 leaked?"))
    assert only(ingress).text == "is [redacted] leaked?"


async def test_a_question_that_cannot_be_redacted_does_not_start(ingress: Ingress) -> None:
    ingress.ports = replace(ingress.ports, redactor=FakeRedactor(fails=True))
    response = await ingress.send(mention())
    assert response.status == 500
    assert ingress.workflows.turns == {}


async def test_a_mention_inside_a_thread_belongs_to_the_thread(ingress: Ingress) -> None:
    await ingress.send(mention(ts="101.1", thread_ts="100.1"))
    assert only(ingress).place.thread_ts == "100.1"


async def test_mention_and_message_of_one_post_are_one_turn(ingress: Ingress) -> None:
    await ingress.send(mention())
    await ingress.send(event(said(f"<@{BOT}> why is checkout slow?"), event_id="Ev2"))
    assert only(ingress).text == "why is checkout slow?"


async def test_a_failed_start_is_not_acknowledged_and_its_redelivery_is_one_turn(
    ingress: Ingress,
) -> None:
    ingress.workflows.failures.append(StorageUnavailable("locked"))
    app = ingress.app()
    first = await deliver(app, mention())
    started = dict(ingress.workflows.turns)
    second = await deliver(app, mention(), retry=1)
    third = await deliver(app, mention(), retry=2)
    await ingress.background.drain(1.0)
    assert (first.status, second.status, third.status) == (500, 200, 200)
    assert started == {}
    assert only(ingress).ts == "100.1"
    assert ingress.whispers.texts == [replies.NOT_STARTED]


async def test_the_last_failure_says_that_no_retry_follows(ingress: Ingress) -> None:
    ingress.workflows.failures.append(StorageUnavailable("locked"))
    await ingress.send(mention(), retry=3)
    assert ingress.whispers.texts == [replies.GAVE_UP]


async def test_the_acknowledgement_waits_for_the_durable_start(ingress: Ingress) -> None:
    ingress.workflows.gate.clear()
    async with asyncio.TaskGroup() as group:
        delivery = group.create_task(deliver(ingress.app(), mention()))
        await ingress.workflows.entered.wait()
        acknowledged_early = delivery.done()
        ingress.workflows.gate.set()
    assert not acknowledged_early
    assert delivery.result().status == 200


async def test_a_message_does_not_overtake_one_of_its_thread_in_a_lookup(
    ingress: Ingress, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ingress.session_at("100.1")
    looked_up, find = asyncio.Event(), ingress.sessions.find

    async def find_slowly(place: Place) -> Session | None:
        await looked_up.wait()
        return await find(place)

    monkeypatch.setattr(ingress.sessions, "find", find_slowly)
    app = ingress.app()
    async with asyncio.TaskGroup() as group:
        group.create_task(deliver(app, event(said("and since when?", ts="103.3", **THREAD))))
        group.create_task(deliver(app, mention(ts="103.4", **THREAD)))
        group.create_task(deliver(app, mention(ts="200.1")))
        await ingress.workflows.entered.wait()
        elsewhere = [ask.ts for ask in ingress.workflows.turns.values()]
        looked_up.set()
    assert elsewhere == ["200.1"]
    assert [ask.ts for ask in ingress.workflows.turns.values()] == ["200.1", "103.3", "103.4"]


async def test_a_hanging_start_ends_in_time_for_a_redelivery() -> None:
    ingress = Ingress(IngressSettings(IDENTITY, handling_timeout_s=0.01))
    ingress.workflows.gate.clear()
    response = await ingress.send(mention())
    assert response.status == 500
    assert ingress.whispers.texts == []  # it may be stored a moment later
    await ingress.send(mention(), retry=1)
    assert ingress.whispers.texts == [replies.NOT_STARTED]


IGNORED: list[Payload] = [
    said("hi", bot_id="B9"),
    said("hi", subtype="bot_message", bot_id="B9"),
    said("hi", user=BOT),
    said("hi", user="USLACKBOT"),
    said("hi", hidden=True),
    said("hi", edited={"user": "U1", "ts": "1.1"}),
    {**said("hi", subtype="message_changed"), "message": {"text": "new"}},
    {**said("", subtype="message_deleted"), "deleted_ts": "1.1"},
    said("joined", subtype="channel_join"),
    said("waves", subtype="me_message"),
    said("topic", subtype="channel_topic"),
]


@pytest.mark.parametrize("inner", IGNORED, ids=lambda inner: str(sorted(inner)))
@pytest.mark.parametrize("text", ["thread words", f"<@{BOT}> do it"])
async def test_events_without_a_persons_new_text_are_ignored_in_a_known_thread(
    ingress: Ingress, inner: Payload, text: str
) -> None:
    await ingress.session_at("100.1")
    response = await ingress.send(
        event({**inner, "text": text, "thread_ts": "100.1", "ts": "102.2"})
    )
    assert response.status == 200
    assert ingress.workflows.turns == {}
    assert ingress.whispers.said == []


async def test_a_bot_that_mentions_the_bot_starts_nothing(ingress: Ingress) -> None:
    await ingress.send(mention(bot_id="B9"))
    assert ingress.workflows.turns == {}


async def test_a_follow_up_in_the_bots_thread_needs_no_mention(ingress: Ingress) -> None:
    await ingress.session_at("100.1")
    await ingress.send(event(said("and since when?", ts="103.3", thread_ts="100.1")))
    assert only(ingress).text == "and since when?"


async def test_a_follow_up_needs_a_mention_when_configured_so() -> None:
    ingress = Ingress(IngressSettings(IDENTITY, follow_up="mention"))
    await ingress.session_at("100.1")
    await ingress.send(event(said("and since when?", ts="103.3", thread_ts="100.1")))
    assert ingress.workflows.turns == {}


@pytest.mark.parametrize("thread", [{}, {"thread_ts": "90.9"}])
async def test_conversation_elsewhere_is_ignored(ingress: Ingress, thread: Payload) -> None:
    await ingress.session_at("100.1")
    await ingress.send(event(said("lunch?", ts="103.3", **thread)))
    assert ingress.workflows.turns == {}


@pytest.mark.parametrize(("fields", "thread_ts"), [({}, ""), ({"thread_ts": "90.9"}, "90.9")])
async def test_a_direct_message_needs_no_mention(
    ingress: Ingress, fields: dict[str, Any], thread_ts: str
) -> None:
    await ingress.send(event(said("why?", channel="D1", channel_type="im", **fields)))
    assert only(ingress).place.thread_ts == thread_ts
    assert ingress.api.calls == []


async def test_an_empty_mention_gets_help_in_its_place(ingress: Ingress) -> None:
    await ingress.send(mention(f" <@{BOT}> "))
    await ingress.send(event(said(f"<@{BOT}>")))
    ((place, user, text),) = ingress.whispers.said
    assert (place.channel, place.thread_ts, user, text) == (CHANNEL, "", "U1", replies.HELP)
    assert ingress.workflows.turns == {}


@pytest.mark.parametrize("text", ["stop", " STOP ", "Stop.", f"<@{BOT}> stop", f"<@{BOT}|k> Stop!"])
async def test_stop_overtakes_the_queue_of_its_thread(ingress: Ingress, text: str) -> None:
    ask = await ingress.session_at("100.1")
    ingress.stops.running.add(ask.turn_id)
    await ingress.send(event(said(text, ts="103.3", thread_ts="100.1")))
    assert ingress.stops.requested == [(ask.turn_id, "U1")]
    assert ingress.workflows.turns == {}


async def test_stop_in_a_direct_message_stops_its_turn(ingress: Ingress) -> None:
    ask = await ingress.session_at("", channel="D1")
    ingress.stops.running.add(ask.turn_id)
    await ingress.send(event(said("stop", channel="D1", channel_type="im")))
    assert ingress.stops.requested == [(ask.turn_id, "U1")]


async def test_stop_with_nothing_running_says_so_and_starts_nothing(ingress: Ingress) -> None:
    await ingress.send(mention(f"<@{BOT}> stop"))
    assert ingress.whispers.texts == [replies.NOTHING_RUNS]
    assert ingress.workflows.turns == {}


async def test_a_sentence_with_stop_in_it_is_a_question(ingress: Ingress) -> None:
    await ingress.send(mention(f"<@{BOT}> stop guessing, look at the logs"))
    assert only(ingress).text == "stop guessing, look at the logs"


async def test_slacks_own_stop_button_stops(ingress: Ingress) -> None:
    ask = await ingress.session_at("100.1")
    inner: Payload = {
        "type": "agent_session_stopped",
        "channel": CHANNEL,
        "thread_ts": "100.1",
        "user": "U2",
    }
    await ingress.send(event(inner))
    assert ingress.stops.requested == [(ask.turn_id, "U2")]


@pytest.mark.parametrize(
    "outer",
    [
        {"team_id": "T9", "authorizations": [{"team_id": "T9"}]},
        {"team_id": "T9", "authorizations": []},
        {"api_app_id": "A9"},
    ],
)
async def test_events_for_other_workspaces_are_dropped_and_audited(
    ingress: Ingress, outer: Payload
) -> None:
    response = await ingress.send({**mention(), **outer})
    assert response.status == 200
    assert ingress.workflows.turns == {}
    assert ingress.memory.kinds() == [AuditKind.INGRESS_DENIED]
    assert ingress.whispers.said == []


async def test_an_event_of_a_shared_channel_is_judged_by_its_installation(
    ingress: Ingress,
) -> None:
    await ingress.send({**mention(), "team_id": "T9"})
    assert only(ingress).place.team == "T1"


@pytest.mark.parametrize("field", ["user_team", "source_team", "team"])
async def test_an_external_person_is_refused_politely(ingress: Ingress, field: str) -> None:
    await ingress.send(mention(**{field: "T9"}))
    assert ingress.workflows.turns == {}
    assert ingress.whispers.texts == [replies.EXTERNAL]
    assert ingress.memory.kinds() == [AuditKind.INGRESS_DENIED]


async def test_external_messages_in_a_bots_thread_are_ignored(ingress: Ingress) -> None:
    await ingress.session_at("100.1")
    before = len(ingress.memory.audit_log)
    await ingress.send(event(said("we see it too", thread_ts="100.1", user_team="T9")))
    assert ingress.workflows.turns == {}
    assert (ingress.whispers.said, len(ingress.memory.audit_log)) == ([], before)


async def test_a_trusted_workspace_may_ask() -> None:
    identity = type(IDENTITY)(
        IDENTITY.team, IDENTITY.bot_user, "BBOT", "A1", trusted_teams=frozenset({"T9"})
    )
    ingress = Ingress(IngressSettings(identity))
    await ingress.send(mention(user_team="T9"))
    assert only(ingress).asker.team == "T9"


async def test_one_person_cannot_flood_and_gets_one_notice() -> None:
    ingress = Ingress(IngressSettings(IDENTITY, asks_per_minute=3))
    app = ingress.app()
    for number in range(500):
        await deliver(app, mention(ts=f"{number}.1"))
    await deliver(app, mention(ts="9000.1", user="U2"))
    await ingress.background.drain(1.0)
    assert len(ingress.workflows.turns) == 4
    assert ingress.whispers.texts == [replies.TOO_MANY]


async def test_the_flood_limit_never_refuses_a_redelivery() -> None:
    ingress = Ingress(IngressSettings(IDENTITY, asks_per_minute=1))
    app = ingress.app()
    ingress.workflows.failures.append(StorageUnavailable("locked"))
    await deliver(app, mention())
    await deliver(app, mention(), retry=1)
    assert only(ingress).ts == "100.1"


async def test_an_event_first_delivered_to_another_replica_is_not_a_second_question() -> None:
    ingress = Ingress(IngressSettings(IDENTITY, asks_per_minute=1))
    app = ingress.app()
    await deliver(
        app, mention(ts="100.1"), retry=1
    )  # its acknowledgement was lost with a connection
    await deliver(app, mention(ts="200.1"))
    await deliver(app, mention(ts="300.1"), retry=1)
    await ingress.background.drain(1.0)
    assert len(ingress.workflows.turns) == 3
    assert ingress.whispers.texts == []


async def test_an_unreadable_event_is_acknowledged_and_not_repeated(ingress: Ingress) -> None:
    response = await ingress.send(event({"type": "message", "channel": "C1", "ts": 7}))
    assert response.status == 200
    assert ingress.workflows.turns == {}


async def test_a_changed_user_group_is_forgotten(ingress: Ingress) -> None:
    await ingress.send(event({"type": "subteam_members_changed", "subteam_id": "S1"}))
    assert ingress.forgotten == ["S1"]


@pytest.mark.parametrize("kind", ["channel_rename", "group_rename"])
async def test_a_renamed_channel_is_forgotten(ingress: Ingress, kind: str) -> None:
    response = await ingress.send(event({"type": kind, "channel": {"id": "C7", "name": "new"}}))
    assert (response.status, ingress.renamed) == (200, [("T1", "C7")])


REACHED: list[Payload] = [
    {"type": "channel_unarchive", "channel": "C7", "user": "U2"},
    {"type": "group_unarchive", "channel": "C7", "user": "U2"},
    {"type": "member_joined_channel", "channel": "C7", "user": BOT},
]


@pytest.mark.parametrize("inner", REACHED, ids=lambda inner: str(inner["type"]))
async def test_a_writable_again_channel_is_reported(ingress: Ingress, inner: Payload) -> None:
    response = await ingress.send(event(inner))
    assert (response.status, ingress.reached) == (200, [("T1", "C7")])


async def test_a_joining_person_and_another_installation_do_not_report_a_channel(
    ingress: Ingress,
) -> None:
    joined: Payload = {"type": "member_joined_channel", "channel": "C7", "user": "U2"}
    await ingress.send(event(joined))
    await ingress.send(event({**joined, "user": BOT}, authorizations=[{"team_id": "T2"}]))
    assert ingress.reached == []


async def test_the_environment_cannot_switch_the_app_to_oauth(
    ingress: Ingress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLACK_CLIENT_ID", "1.2")
    monkeypatch.setenv("SLACK_CLIENT_SECRET", "secret")
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-other")
    await ingress.send(mention())
    assert only(ingress).text == "why is checkout slow?"


FILE: dict[str, Any] = {"id": "F1", "name": "app.log", "mimetype": "text/plain", "size": 42}


async def test_the_files_of_a_message_are_passed_with_its_question(ingress: Ingress) -> None:
    hostile = {"id": "F2", "name": "SECRET-abc123 <!channel>|`x`\n\ud800\x00", "mimetype": None}
    await ingress.send(mention(files=[FILE, hostile, {"id": ""}]))

    assert only(ingress).files == (
        AttachedFile("F1", "app.log", "text/plain", 42),
        AttachedFile("F2", "[redacted] ‹!channel›¦'x'"),
    )


@pytest.mark.parametrize(
    "files", [None, "F1", {}, [7], [{"id": {"a": 1}}], [{"id": "F1", "size": "big"}]]
)
async def test_unreadable_files_lose_no_question(ingress: Ingress, files: Any) -> None:
    await ingress.send(mention(files=files))
    assert only(ingress).files == ()


async def test_a_mention_with_only_a_file_asks_what_it_shows(ingress: Ingress) -> None:
    await ingress.send(mention(text=f"<@{BOT}>", files=[FILE]))
    assert only(ingress).text == replies.ABOUT_FILES


async def test_a_file_without_text_in_a_thread_asks_nothing(ingress: Ingress) -> None:
    await ingress.send(mention())
    await ingress.send(event(said("", ts="100.2", subtype="file_share", files=[FILE], **THREAD)))
    assert len(ingress.workflows.turns) == 1
