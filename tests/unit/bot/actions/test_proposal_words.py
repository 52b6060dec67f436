"""All views of a proposal's state use the same word."""

from dataclasses import replace

import pytest

from bot.actions.notes import proposal_notes
from bot.actions.orders import line
from bot.audit.verify import Summary
from bot.domain.change import named
from bot.domain.dossier import Dossier
from bot.domain.ids import UserId
from bot.domain.proposal import Proposal, ProposalState, title, too_late, word
from bot.domain.session import Session
from bot.reports.incident import ReportFacts, report
from bot.slack.text.card_spoofing import LABEL, disclaimed
from bot.slack.views.cards import card
from tests.fakes.stores import Memory, MemoryProposals
from tests.fixtures_actions import HERE
from tests.golden.slack_views import proposal

BEFORE_IT_EXPIRES = proposal().created_at


def in_state(state: ProposalState, outcome: str) -> Proposal:
    return replace(
        proposal(state),
        decided_by=UserId("U2"),
        decided_at=BEFORE_IT_EXPIRES,
        outcome=outcome,
    )


def reported(row: Proposal) -> str:
    session = Session(row.session_id, row.place, "s", row.created_at, row.created_at)
    facts = ReportFacts(row.created_at, Summary(0, "", None, 0, 0, 0), None)
    return report(Dossier(session, (), (row,), (), ()), facts)


@pytest.mark.parametrize("outcome", ["", '{"error":"503"}'])
@pytest.mark.parametrize("state", ProposalState)
async def test_every_view_of_a_state_uses_the_same_word(state: ProposalState, outcome: str) -> None:
    row = in_state(state, outcome)
    store = MemoryProposals(Memory())
    store.rows[row.id] = row

    (note,) = await proposal_notes(store, row.session_id, row.place, HERE)
    shown = card(row, "responder", BEFORE_IT_EXPIRES)

    assert f"### {named(row)}: {word(state)}\n" in reported(row)
    assert word(state) in note
    assert f"{named(row)}: " in line(row)
    assert word(state) in line(row)
    assert word(state) in too_late(row, "Ana")
    assert shown.text.startswith(f"{title(state)}: {named(row)}")
    assert str(shown.blocks[0]).count(title(state)) == 1


@pytest.mark.parametrize("state", ProposalState)
def test_a_card_imitation_by_a_model_is_disclaimed(state: ProposalState) -> None:
    assert LABEL in disclaimed(f"**{title(state)}: rollback-deploy**")
