"""The buttons of an answer: Stop, and the numbered results."""

import json

import pytest

from bot.domain.ids import MessageTs
from bot.domain.session import TurnState
from bot.domain.turn_events import Evidence
from bot.ports.failures import SurfaceFailed
from bot.slack.listeners import replies
from tests.slack_ingress import NOW, Ingress, Payload, pressed

TURN = "turn:T1:C1:100.1"


@pytest.fixture
async def ingress() -> Ingress:
    ingress = Ingress()
    ask = await ingress.session_at("100.1")
    ingress.stops.running.add(ask.turn_id)
    return ingress


async def with_evidence(ingress: Ingress) -> None:
    ask = await ingress.session_at("100.1")
    found = Evidence(1, "c1", "core__get_logs", "12 lines", True, 40, False, '{"lines":[]}')
    await ingress.sessions.finish_turn(ask.turn_id, TurnState.ANSWERED, [], [found], NOW)


async def test_every_notice_of_an_answer_is_behind_its_evidence(ingress: Ingress) -> None:
    ask = await ingress.session_at("100.1")
    told = [f"provider {n} did not answer" for n in range(5)]
    await ingress.sessions.finish_turn(ask.turn_id, TurnState.ANSWERED, [], [], NOW, notices=told)

    await ingress.send(pressed("evidence:all", ask.turn_id))

    ((method, opened),) = ingress.api.calls
    assert method == "views.open"
    assert all(each in str(opened["view"]) for each in told)


async def test_stop_stops_the_turn_of_its_answer(ingress: Ingress) -> None:
    ask = await ingress.session_at("100.1")
    await ingress.sessions.set_answer(ask.turn_id, MessageTs("200.2"))
    await ingress.send(pressed("turn:stop", "whatever"))
    assert ingress.stops.requested == [(ask.turn_id, "U1")]
    assert ingress.whispers.said == []


async def test_stop_falls_back_to_the_turn_the_button_names(ingress: Ingress) -> None:
    await ingress.send(pressed("turn:stop", TURN))
    assert ingress.stops.requested == [(TURN, "U1")]


async def test_stop_never_reaches_another_channels_turn(ingress: Ingress) -> None:
    await ingress.send(pressed("turn:stop", "turn:T1:C9:100.1"))
    assert ingress.stops.requested == []
    assert ingress.whispers.texts == [replies.NOTHING_RUNS]


async def test_stop_on_a_finished_answer_says_so(ingress: Ingress) -> None:
    ingress.stops.running.clear()
    await ingress.send(pressed("turn:stop", TURN))
    assert ingress.whispers.texts == [replies.NOTHING_RUNS]


@pytest.mark.parametrize(
    ("action", "value"),
    [("turn:stop", TURN), ("evidence:all", TURN), ("evidence:open:1", f"{TURN}|1")],
)
async def test_external_people_get_neither_stop_nor_results(
    ingress: Ingress, action: str, value: str
) -> None:
    await with_evidence(ingress)
    await ingress.send(pressed(action, value, user={"id": "U8", "team_id": "T9"}))
    assert ingress.stops.requested == []
    assert ingress.api.count("views.open") == 0
    assert ingress.whispers.texts == [replies.EXTERNAL]


@pytest.mark.parametrize(
    ("action", "value"), [("evidence:all", TURN), ("evidence:open:1", f"{TURN}|1")]
)
async def test_a_guest_gets_no_result_and_a_message_at_the_button(
    ingress: Ingress, action: str, value: str
) -> None:
    await with_evidence(ingress)
    ingress.roles.outsiders["U1"] = "Guests can't open this."
    await ingress.send(pressed(action, value))
    ((method, arguments),) = ingress.api.calls
    assert method == "views.open"
    assert "Guests can't open this." in str(arguments["view"])
    assert "12 lines" not in str(arguments["view"])


@pytest.mark.parametrize("who", ["member", "guest", "external"])
async def test_who_reads_the_channel_reads_the_whole_answer_but_only_members_its_results(
    ingress: Ingress, who: str
) -> None:
    ask = await ingress.session_at("100.1")
    found = Evidence(1, "c1", "core__get_logs", "12 lines", True, 40, False, '{"lines":[]}')
    await ingress.sessions.finish_turn(
        ask.turn_id, TurnState.ANSWERED, [], [found], NOW, answer="The *whole* answer <@U1>."
    )
    ingress.roles.outsiders |= {"guest": {"U1": "Guests can't open this."}}.get(who, {})
    person: dict[str, Payload] = (
        {"user": {"id": "U8", "team_id": "T9"}} if who == "external" else {}
    )
    await ingress.send(pressed("evidence:all", ask.turn_id, **person))

    ((method, arguments),) = ingress.api.calls
    assert method == "views.open"
    assert "whole* answer &lt;@U1&gt;." in str(arguments["view"])
    assert ("12 lines" in str(arguments["view"])) is (who == "member")
    assert ingress.whispers.texts == []


async def test_evidence_opens_in_a_modal_with_the_clicks_trigger(ingress: Ingress) -> None:
    await with_evidence(ingress)
    await ingress.send(pressed("evidence:open:1", f"{TURN}|1"))
    ((method, arguments),) = ingress.api.calls
    assert (method, arguments["trigger_id"]) == ("views.open", "trigger-1")
    assert "12 lines" in str(arguments["view"])


@pytest.mark.parametrize(
    "value", [f"{TURN}|2", "turn:T1:C9:100.1|1", f"{TURN}|x", TURN, "", f"{TURN}|1|1"]
)
async def test_evidence_of_another_place_is_not_shown(ingress: Ingress, value: str) -> None:
    await with_evidence(ingress)
    await ingress.send(pressed("evidence:open:1", value))
    assert ingress.api.calls == []
    assert ingress.whispers.texts == [replies.EVIDENCE_GONE]


async def test_evidence_lists_the_results_and_opens_one_on_top(ingress: Ingress) -> None:
    await with_evidence(ingress)
    await ingress.send(pressed("evidence:all", TURN))
    ((method, listed),) = ingress.api.calls
    view = listed["view"]
    assert isinstance(view, dict)
    await ingress.send(in_modal(str(view["private_metadata"]), f"{TURN}|1", "evidence:open:1"))

    assert method == "views.open"
    assert "12 lines" in str(view["blocks"])
    assert ingress.api.calls[-1][0] == "views.push"
    assert "12 lines" in str(ingress.api.calls[-1][1]["view"])


@pytest.mark.parametrize("value", ["turn:T1:C9:100.1", "turn:T1:C1:9.9", "", f"{TURN}|1"])
async def test_the_results_of_another_place_are_not_listed(ingress: Ingress, value: str) -> None:
    await with_evidence(ingress)
    await ingress.send(pressed("evidence:all", value))
    assert ingress.api.calls == []
    assert ingress.whispers.texts == [replies.EVIDENCE_GONE]


def chosen(value: str) -> Payload:
    """The menu below an answer: its action has no value of its own."""
    option: Payload = {"text": {"type": "plain_text", "text": "E1 get_logs"}, "value": value}
    menu: Payload = {"type": "static_select", "action_id": "evidence:select", "block_id": "b"}
    return pressed("", "", actions=[menu | {"selected_option": option, "action_ts": "300.3"}])


async def test_a_result_chosen_from_the_menu_opens_in_the_same_modal(ingress: Ingress) -> None:
    await with_evidence(ingress)
    await ingress.send(chosen(f"{TURN}|1"))
    ((method, arguments),) = ingress.api.calls
    assert (method, arguments["trigger_id"]) == ("views.open", "trigger-1")
    assert "12 lines" in str(arguments["view"])


@pytest.mark.parametrize("value", [f"{TURN}|2", "turn:T1:C9:100.1|1", ""])
async def test_an_option_of_another_place_opens_nothing(ingress: Ingress, value: str) -> None:
    await with_evidence(ingress)
    await ingress.send(chosen(value))
    assert ingress.api.calls == []
    assert ingress.whispers.texts == [replies.EVIDENCE_GONE]


def in_modal(metadata: str, value: str, action: str = "evidence:raw") -> Payload:
    """A button of a modal that was opened from an answer."""
    payload = pressed(action, value, container={"type": "view", "view_id": "V1"})
    del payload["message"]
    view: Payload = {"id": "V1", "callback_id": "evidence", "private_metadata": metadata}
    return payload | {"view": view}


async def test_the_json_of_an_opened_result_is_shown_on_top_of_it(ingress: Ingress) -> None:
    await with_evidence(ingress)
    await ingress.send(pressed("evidence:open:1", f"{TURN}|1"))
    metadata = str(ingress.api.calls[0][1]["view"]["private_metadata"])  # type: ignore[index, call-overload]
    await ingress.send(in_modal(metadata, f"{TURN}|1"))

    method, arguments = ingress.api.calls[-1]
    assert method == "views.push"
    assert '"lines": []' in json.dumps(arguments["view"]).replace("\\", "")


@pytest.mark.parametrize(
    ("metadata", "value"),
    [("", f"{TURN}|1"), ("{}", f"{TURN}|1"), ("kept", "turn:T1:C9:100.1|1"), ("kept", "")],
)
async def test_a_modal_shows_no_json_of_another_channel(
    ingress: Ingress, metadata: str, value: str
) -> None:
    await with_evidence(ingress)
    await ingress.send(pressed("evidence:open:1", f"{TURN}|1"))
    kept = str(ingress.api.calls[0][1]["view"]["private_metadata"])  # type: ignore[index, call-overload]
    await ingress.send(in_modal(kept if metadata == "kept" else metadata, value))

    assert ingress.api.count("views.push") == 0


async def test_external_people_get_no_json_of_an_opened_result(ingress: Ingress) -> None:
    await with_evidence(ingress)
    await ingress.send(pressed("evidence:open:1", f"{TURN}|1"))
    kept = str(ingress.api.calls[0][1]["view"]["private_metadata"])  # type: ignore[index, call-overload]
    await ingress.send(in_modal(kept, f"{TURN}|1") | {"user": {"id": "U8", "team_id": "T9"}})

    assert ingress.api.count("views.push") == 0


async def test_a_modal_that_does_not_open_is_reported(ingress: Ingress) -> None:
    await with_evidence(ingress)
    ingress.api.answers["views.open"] = SurfaceFailed("expired_trigger_id", retryable=False)
    await ingress.send(pressed("evidence:open:1", f"{TURN}|1"))
    assert ingress.whispers.texts == [replies.EVIDENCE_NOT_OPENED]
