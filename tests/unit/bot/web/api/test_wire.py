"""Every event of a turn as it goes over the wire: the golden form that clients read."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import orjson
import pytest

from adapters.llm.messages import Usage
from bot.chat.delivery import NOT_READ
from bot.domain.chats import ChatEventKind, NewChatEvent
from bot.domain.claims import Claim, ClaimState
from bot.domain.ids import TurnId
from bot.domain.turn_events import Evidence, Notice, ToolProgress, TurnEnd
from bot.web.api import models
from bot.web.api.chat import wire
from tests.golden.slack_views import AT, finished, proposal
from tools.errors import ToolErrorCode
from tools.records import CallEnded, CallSlow, CallStarted, ToolInvocationRecord, ToolOutcome

GOLDEN = Path(__file__).parents[4] / "golden" / "api_events.json"
MESSAGE = "1763700000.000100"


def _outcome(error: ToolErrorCode | None = None) -> ToolOutcome:
    record = ToolInvocationRecord(
        "c1",
        "core__get_logs",
        {"product": "checkout"},
        error is None,
        error,
        "" if error is None else "upstream: 503",
        AT,
        AT + timedelta(milliseconds=120),
        64,
        False,
    )
    return ToolOutcome(record, '{"lines": 42}', "42 lines, last 30m")


FINAL = finished(
    usage=Usage(1_000, 500, 7, 200),
    notices=("the model was changed",),
    claims=(Claim("The pool is exhausted", (1,), ClaimState.SUPPORTED),),
    outcomes=(_outcome(),),
    evidence=(Evidence.of(1, _outcome()),),
)
EVENTS: dict[str, NewChatEvent] = {
    "question": wire.question(MESSAGE, "why?", "alice"),
    "text": wire.text(MESSAGE, "The pool "),
    "reset": wire.reset(MESSAGE, "The pool is full."),
    "tool starts": wire.progress(
        MESSAGE, ToolProgress(CallStarted("c1", "core__get_logs", {"product": "checkout"}))
    ),
    "tool is slow": wire.progress(MESSAGE, ToolProgress(CallSlow("c1", "core__get_logs"))),
    "tool ends": wire.progress(MESSAGE, ToolProgress(CallEnded(_outcome()), evidence=1)),
    "tool fails": wire.progress(
        MESSAGE, ToolProgress(CallEnded(_outcome(ToolErrorCode.UPSTREAM)), evidence=2)
    ),
    "notice": wire.progress(MESSAGE, Notice("failing over")),
    "line of the session": wire.notice("", "Rolled back.", "say:k"),
    "proposal": wire.proposed(proposal()),
    **{each.kind.value: each for each in wire.ending(MESSAGE, FINAL, ("checkout",))},
}


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_has_its_promised_form(name: str) -> None:
    event = EVENTS[name]
    golden = orjson.loads(GOLDEN.read_bytes())

    assert {"event": event.kind.value, **orjson.loads(event.data)} == golden[name]
    models.EVENTS[event.kind].model_validate_json(event.data)


@pytest.mark.parametrize(
    ("changes", "notices"),
    [
        ("", ["checked"]),
        ("The proposed restart of checkout was confirmed and carried out.", ["checked", "The pro"]),
        (NOT_READ, ["checked", "Kortex "]),
    ],
)
def test_the_end_of_a_failed_turn_reports_its_proposals(changes: str, notices: list[str]) -> None:
    failed = replace(FINAL, end=TurnEnd.FAILED, notices=("checked",), changes=changes)
    *_, done = wire.ending(MESSAGE, failed, ("checkout",))

    assert [each[:7] for each in orjson.loads(done.data)["notices"]] == notices


def test_every_kind_of_event_has_a_golden_form_and_a_model() -> None:
    assert {event.kind for event in EVENTS.values()} == set(ChatEventKind) == set(models.EVENTS)


def test_a_message_has_the_number_of_its_question() -> None:
    assert wire.message_of(TurnId(f"turn:@api:incident-checkout:{MESSAGE}")) == MESSAGE


@pytest.mark.parametrize("odd", ["\ud800", "\x00", "a" * 100_000, '"\\\n'])
def test_odd_text_is_one_line_of_json(odd: str) -> None:
    event = wire.text(MESSAGE, odd)

    assert "\n" not in event.data
    assert len(orjson.loads(event.data)["text"]) == len(odd)
