"""The first page of an incident report: what was answered and decided, and nothing that was not."""

from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.dossier import Dossier, DossierTurn
from bot.domain.ids import ChannelId, MessageTs, Place, SessionId, TeamId, UserId
from bot.domain.proposal import Proposal, ProposalState
from bot.domain.session import Session
from bot.reports.one_page import MOST_EVENTS, one_page
from tests.slack_ingress import proposal

PLACE = Place(TeamId("T1"), ChannelId("C1"), MessageTs("1.0"))
AT = datetime(2026, 4, 7, 14, 35, tzinfo=UTC)
CAUSE = (
    "**Most likely cause: the deploy of checkout v2 at 14:09 UTC.**\n\n"
    "- up to 7.4 % of requests fail since 14:10 UTC (normally 0.45 %) [E1]\n"
    "- v2 went out at 14:09 UTC, replacing v1 [E5]\n\nA rollback of checkout is proposed below."
)
OVER = "**It is over, as far as I can see. Nothing is wrong with checkout since 14:40 UTC.** [E5]"


def turn(number: int, question: str, answer: str, state: str = "answered") -> DossierTurn:
    at = AT + timedelta(minutes=number)
    return DossierTurn(f"t{number}", "U1", question, answer, state, at, at, None, ())


def page(*turns: DossierTurn, proposals: tuple[Proposal, ...] = ()) -> str:
    session = Session(SessionId("session:T1:C1:1.0"), PLACE, "incident", AT, AT)
    return "\n".join(one_page(Dossier(session, turns, proposals, (), ())))


def section(text: str, name: str) -> str:
    return text.partition(f"## {name}\n")[2].partition("\n## ")[0]


def test_the_page_has_its_six_parts_in_order() -> None:
    heads = [line for line in page(turn(0, "why?", CAUSE)).split("\n") if line.startswith("## ")]

    assert heads == [
        "## Summary",
        "## Impact",
        "## Cause",
        "## Timeline in brief",
        "## Actions taken",
        "## Open questions",
    ]


def test_the_cause_is_the_answers_and_the_impact_is_its_figures() -> None:
    text = page(turn(0, "why is it slow?", CAUSE), turn(1, "thanks", "You are welcome."))

    assert "Most likely cause: the deploy of checkout v2 at 14:09 UTC." in section(text, "Cause")
    assert "no person confirmed it" in section(text, "Cause")
    assert "- up to 7.4 % of requests fail" in section(text, "Impact")
    assert "[E" not in text


def test_the_state_is_the_newest_answered_one() -> None:
    over = page(turn(0, "why?", CAUSE), turn(9, "is it over?", OVER))
    unasked = page(turn(0, "why?", CAUSE))

    assert "Last known state: It is over, as far as I can see." in section(over, "Summary")
    assert "Is it over?" not in section(over, "Open questions")
    assert "- Is it over?" in section(unasked, "Open questions")


def test_a_missing_cause_is_not_invented() -> None:
    text = page(turn(0, "hi", "Hello."), turn(1, "why?", "", "failed"))

    assert "No answer named a cause." in section(text, "Cause")
    assert "- Not answered (failed): why?" in section(text, "Open questions")
    assert "- No figure is on record." in section(text, "Impact")


def test_executed_and_waiting_actions_are_separated() -> None:
    done = proposal(
        state=ProposalState.SUCCEEDED, decided_by=UserId("U7"), decided_at=AT + timedelta(minutes=5)
    )
    text = page(turn(0, "why?", CAUSE), proposals=(done, proposal()))

    assert section(text, "Actions taken").count("\n- ") == 1
    assert section(text, "Open questions").count("waits for a decision") == 1


@pytest.mark.parametrize("number", [1, 2, MOST_EVENTS, 200])
def test_the_timeline_has_at_most_ten_lines_with_the_first_and_the_last(number: int) -> None:
    lines = section(
        page(*(turn(n, f"question {n}", "answer") for n in range(number))), "Timeline in brief"
    ).strip()

    assert len(lines.split("\n")) <= MOST_EVENTS
    assert [n for n in (0, number - 1) if f"question {n} " not in lines] == []
