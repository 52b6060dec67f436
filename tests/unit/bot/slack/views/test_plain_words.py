"""Messages in plain words."""

import json
from dataclasses import replace
from typing import Any

import pytest

from adapters.llm.messages import Usage
from bot.actions.orders import line
from bot.chat.budget_report import budget_report
from bot.chat.claims.answer import checked
from bot.domain.budget import BudgetLimits
from bot.domain.channel import ChannelRule
from bot.domain.ids import SessionId, UserId
from bot.domain.proposal import ProposalState
from bot.domain.roles import HeldRoles
from bot.domain.turn_events import TextDelta, TurnEnd, TurnFinished
from bot.slack.listeners.budget_answer import budget_answer
from bot.slack.listeners.home import HomeContent, home_view
from bot.slack.views.render import render
from tests.fakes.stores import Memory, MemoryLedger
from tests.fixtures_stores import ROUND
from tests.golden.slack_views import finished, view
from tests.slack_ingress import proposal


def test_a_doubtful_statement_is_marked_in_place_and_counted_below() -> None:
    text, claims = checked("p99 is 3.7 s. Look at the pool.", (), {}, "")
    (part,) = render(view([finished(text=text, claims=claims)]))

    assert "p99 is 3.7 s. (⚠ not checked: no tool was called) Look at the pool." in " ".join(
        part.text.split()
    )
    assert "0 of 1 statement checked" in json.dumps(part.blocks, ensure_ascii=False)


@pytest.mark.parametrize("action", ["restart", "restart-host"])
def test_an_actions_effect_is_reported_in_a_sentence(action: str) -> None:
    row = proposal(
        action=action,
        product="web",
        params='{"host":"web-1"}',
        state=ProposalState.SUCCEEDED,
    )
    assert line(row) == "✓ Restart host web-1 of web: succeeded."


async def test_the_budget_shows_no_ids() -> None:
    ledger = MemoryLedger(Memory())
    rows = (
        ("session:T1:D0BOB:", "U0ADMIN", "D0BOB"),
        ("session:T1:C0X:1.1", "U0BOB", "C0X"),
        ("session:T1:C0X:2.1", "@alert", "C0X"),
    )
    for n, (session, user, channel) in enumerate(rows):
        spent = replace(ROUND, session_id=SessionId(session), user=UserId(user), round=n)
        await ledger.record(replace(spent, channel=channel, usage=Usage(1, 1)))
    told = budget_answer(await budget_report(ledger, BudgetLimits()))

    bare = told.text.replace("<@U0ADMIN>", "").replace("<@U0BOB>", "").replace("<#C0X>", "")
    assert "U0" not in bare
    assert "D0BOB" not in bare
    assert "C0X" not in bare
    cells = [cell for row in told.blocks[-1]["rows"] for cell in row]  # type: ignore[union-attr]
    texts = [str(cell["text"]) for cell in cells if cell["type"] == "raw_text"]  # type: ignore[index, call-overload]
    assert not any(name in text for text in texts for name in ("U0", "D0BOB", "C0X", "@"))
    assert "alerts" in texts


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (ChannelRule("*", confirm=("responder",)), "in any other channel: responder"),
        (ChannelRule("incident-*"), "in `#incident-*`: no one; everyone can ask"),
        (ChannelRule("@direct", confirm=("sre",)), "in direct messages: sre"),
        (ChannelRule("@group", confirm=("sre",)), "in group messages: sre"),
    ],
)
def test_the_approvers_of_a_channel_are_listed_in_words(rule: ChannelRule, told: str) -> None:
    seen = HomeContent((rule,), HeldRoles(), True, (), "")
    shown = json.dumps(home_view(seen))

    assert told in shown
    assert "`*`" not in shown
    assert "everywhere else" not in shown


def ending(final: TurnFinished, streamed: str = "") -> str:
    """The line below the text that says how an answer ended."""
    blocks: Any = render(view([TextDelta(streamed), final]))[-1].blocks
    return str(next(b for b in blocks if b["type"] == "context")["elements"][0]["text"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x" * 4_600, "The text so far is kept above."),
        ("", "No results were gathered."),
    ],
)
def test_an_unfinished_answer_keeps_the_text_above_it(text: str, told: str) -> None:
    final = finished(end=TurnEnd.FAILED, text=text, evidence=())
    assert ending(final) == (
        f"🔴 This answer could not be finished. {told} Nothing was changed; ask again."
    )


def test_an_unfinished_answer_reports_its_proposals() -> None:
    changes = "The proposed restart of <!channel> was confirmed and carried out."
    final = finished(end=TurnEnd.FAILED, text="", evidence=(), changes=changes)
    headline = ending(final)

    assert "was confirmed and carried out." in headline
    assert "Nothing was changed" not in headline
    assert "<!channel>" not in headline


def test_streamed_text_counts_when_the_end_has_no_text() -> None:
    final = finished(end=TurnEnd.FAILED, text="", evidence=())
    assert "No results" not in ending(final, "so far")
