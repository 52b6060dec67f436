"""A whole bot that Slack reaches by signed HTTP alone: what its other tests show over Socket Mode.

One bot serves all tests of this module. What may differ by the way it came in is each kind of
delivery: an event, one with files, a slash command, a press in a message, one in a modal, a form.
"""

import pytest
from pydantic import JsonValue

from bot.demo.workspace.json_access import JsonObject
from bot.demo.workspace.seeds import CHECKOUT, GUEST, MEMBER, RESPONDER
from bot.demo.workspace.timeline import Message
from bot.slack.views.modals import FEEDBACK_ACTION
from bot.slack.views.sources import RAW_ACTION
from tests.fakes.alert_senders import SECRET
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import shared_stage
from tests.scenario.test_alerts import RULE, alert, group, opening, send
from tests.scenario.test_attached_files import LOG, ask
from tests.scenario.test_chart_command import P99, asked, charts
from tests.stage import CONFIRM, Asked, Stage, question_of, results, shown

__all__ = ["shared_stage"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

SETTINGS: dict[str, JsonValue] = {
    "slack": {"mode": "http", "app_token": "", "stream": "auto"},
    "http": {"alertmanager_token": SECRET},
    "alerts": [{"name": "critical", **RULE}],
}
COMPARE = Call(
    "core__compare_to_baseline",
    {"product": "checkout", "metric_name": P99, "time_range": "last 1h"},
)
PROPOSE = Call(
    "core__propose_action",
    {"action": "rollback-deploy", "product": "checkout", "params": {}, "rationale": "it leaks"},
)
SLOW, FILE = "The p99 of checkout is above its baseline [E1].", "It waited 3417 times [E1]."


def SCRIPT(request: Recorded) -> Round:  # noqa: N802 - what the shared fixture looks for
    """Measure, or propose where that is asked; then say what the first result holds."""
    if results(request):
        is_file = "pool exhausted" in results(request)[0]
        return Round(text=(FILE if is_file else SLOW,))
    return Round(calls=(PROPOSE if "roll back" in question_of(request) else COMPARE,))


async def measured(stage: Stage) -> tuple[Asked, Message]:
    question = await stage.ask("@kortex why is checkout slow?", stage.newcomer())
    await stage.answer(question)
    return question, stage.parts(question)[-1]


async def test_slack_reaches_the_bot_only_over_http(shared_stage: Stage) -> None:
    await measured(shared_stage)

    assert not shared_stage.workspace.sockets.connections


async def test_an_answer_has_its_chart_and_opens_the_raw_result_over_http(
    shared_stage: Stage,
) -> None:
    _, answer = await measured(shared_stage)
    assert len(charts(answer)) == 1

    opened = await shared_stage.open_result(MEMBER, answer)
    await shared_stage.workspace.press_in_view(MEMBER, str(opened["id"]), RAW_ACTION)
    pushed = await shown_next(shared_stage, MEMBER, 3)

    assert "baseline_median" in str(pushed["blocks"])


async def test_a_guest_cannot_open_a_result(shared_stage: Stage) -> None:
    _, answer = await measured(shared_stage)

    told = await shared_stage.private_reply(
        GUEST, shared_stage.press(GUEST, answer, "evidence:all")
    )

    assert "Guests and people of other companies can't open this" in told


async def test_a_votes_reason_arrives_from_a_form(shared_stage: Stage) -> None:
    _, answer = await measured(shared_stage)
    voter = shared_stage.newcomer()

    await shared_stage.press(voter, answer, f"{FEEDBACK_ACTION}:down")
    form = await shown_next(shared_stage, voter, 1)
    ack = await shared_stage.workspace.submit(voter, str(form["id"]), {"text": "the wrong pool"})

    assert ack.ok
    rows = shared_stage.query("SELECT vote, reason FROM feedback WHERE user_id = ?", voter)
    assert rows == [("down", "the wrong pool")]


async def test_a_message_with_a_file_is_answered_from_it(shared_stage: Stage) -> None:
    answer = await shared_stage.answer(await ask(shared_stage, "@kortex what is this?", LOG))

    assert f"{FILE} (from the attached file)" in answer


async def test_a_thread_digest_is_shown(shared_stage: Stage) -> None:
    question, _ = await measured(shared_stage)

    digest = await shared_stage.answered("@kortex catch me up", thread=question.thread)

    assert "What is open" in digest
    assert "@kortex why is checkout slow?" in digest


async def test_commands_chart_and_list_activity(shared_stage: Stage) -> None:
    await shared_stage.close_open()
    question = await shared_stage.ask("@kortex roll back checkout", shared_stage.newcomer())
    card = await shared_stage.card(question)

    drawn = await asked(shared_stage, f"chart {P99} checkout last 1h")
    sessions, proposals = [
        str((await shared_stage.workspace.command(RESPONDER, CHECKOUT, text)).body)
        for text in ("sessions", "proposals")
    ]

    assert len(charts(drawn)) == 1
    assert "question" in sessions
    assert card.ts.replace(".", "") in proposals


async def test_an_alert_is_answered_and_its_thread_continues(shared_stage: Stage) -> None:
    await send(shared_stage, group(alert("Latency")))
    thread = await opening(shared_stage, "Latency is slow")
    await shared_stage.answer(thread)

    answer = await shared_stage.answered(
        "and since when?", shared_stage.newcomer(), thread=thread.thread
    )

    assert SLOW in answer


async def test_a_responders_press_acts_once_and_a_guests_never(shared_stage: Stage) -> None:
    await shared_stage.close_open()
    question = await shared_stage.ask("@kortex roll back checkout", shared_stage.newcomer())
    card = await shared_stage.card(question)

    refused = await shared_stage.private_reply(GUEST, shared_stage.press(GUEST, card, CONFIRM))
    before = shared_stage.effects
    await shared_stage.press(RESPONDER, card, CONFIRM)

    assert "Succeeded" in shown(await shared_stage.card(question, "Succeeded"))
    assert "Guests can't confirm" in refused
    assert (before, shared_stage.effects) == (0, 1)


async def shown_next(stage: Stage, user: str, count: int) -> JsonObject:
    """The topmost of so many modals in front of a person."""
    views = await stage.workspace.wait_for(
        lambda: found if len(found := stage.workspace.modals_of(user)) >= count else None
    )
    return views[-1]
