"""A rehearsal that went through says on every surface that nothing was sent."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from bot.actions.orders import line
from bot.audit.verify import Summary
from bot.cli.chat.screen import Screen
from bot.domain.dossier import Dossier
from bot.domain.proposal import Proposal, ProposalState
from bot.domain.session import Session
from bot.reports.incident import ReportFacts, report
from bot.reports.one_page import one_page
from bot.slack.views.cards import card
from bot.web.api import models
from bot.web.api.chat.wire import proposed
from bot.web.api.proposals import proposal_model
from tests.golden.slack_views import AT, proposal

PREVIEW = '{"rehearsal":"nothing is sent","would_send":{"params":{"version":"v1"}}}'


def dossier(row: Proposal) -> Dossier:
    return Dossier(Session(row.session_id, row.place, "incident", AT, AT), (), (row,), (), ())


def terminal(show: Callable[[Screen], None]) -> str:
    told: list[str] = []
    show(Screen(told.append))
    return "".join(told)


SURFACES: dict[str, Callable[[Proposal], str]] = {
    "the card in Slack": lambda row: card(row, "responder", AT).text,
    "the line in the thread": line,
    "the report": lambda row: report(
        dossier(row), ReportFacts(AT, Summary(0, "", None, 0, 0, 0), None)
    ),
    "the page of an incident": lambda row: "\n".join(one_page(dossier(row))),
    "the API and the operator's page": lambda row: proposal_model(row).status,
    "an event of the API": lambda row: proposed(row).data,
    "the terminal": lambda row: terminal(lambda screen: screen.proposal(proposal_model(row))),
    "an event in the terminal": lambda row: terminal(
        lambda screen: screen.event(models.ProposalEvent.model_validate_json(proposed(row).data))
    ),
}


@pytest.mark.parametrize("shown", SURFACES.values(), ids=SURFACES)
def test_every_surface_says_that_nothing_was_sent(shown: Callable[[Proposal], str]) -> None:
    row = replace(proposal(ProposalState.SUCCEEDED, preview=PREVIEW), decided_at=AT)

    assert "rehearsed, nothing sent" in shown(row).lower()
    assert "succeeded" not in shown(replace(row, id=row.id)).replace('"state":"succeeded"', "")


def test_the_terminal_shows_a_card_without_json() -> None:
    row = proposal(params='{"host":"web-1","count":3}', preview=PREVIEW)
    shown = terminal(lambda screen: screen.proposal(proposal_model(row)))

    assert "  arguments: host web-1, count 3\n" in shown
    assert "  may be confirmed by: responder\n" in shown
    assert not {"{", "["} & {*shown.split("dry run")[0]}


def test_a_number_that_no_float_holds_is_shown_as_it_runs() -> None:
    row = proposal(params='{"count":18446744073709551617}', preview=PREVIEW)
    shown = terminal(lambda screen: screen.proposal(proposal_model(row)))

    assert '  arguments: {"count":18446744073709551617}\n' in shown
    assert '{"count":18446744073709551617}' in str(card(row, "responder", AT).blocks)
