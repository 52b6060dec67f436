"""The proposal's machine, its canonical parameters, and the proof that a person confirmed."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.ids import (
    ChannelId,
    MessageTs,
    Person,
    Place,
    ProposalId,
    SessionId,
    TeamId,
    TurnId,
    UserId,
)
from bot.domain.proposal import (
    LEGAL,
    LIFETIME,
    ConfirmedProposal,
    IllegalTransition,
    Proposal,
    ProposalState,
    blast_rank,
    canonical,
    check_transition,
    confirmed_from_row,
    digest,
    proposal_id,
)

S = ProposalState
NOW = datetime(2026, 3, 1, tzinfo=UTC)
CONFIRMED = Proposal(
    id=ProposalId("p_1"),
    session_id=SessionId("s1"),
    turn_id=TurnId("t1"),
    place=Place(TeamId("T1"), ChannelId("C1"), MessageTs("1.1")),
    asked_by=Person(TeamId("T1"), UserId("U1")),
    action="restart",
    product="checkout",
    params="{}",
    digest=digest("restart", "checkout", "{}"),
    rationale="",
    model_blast_radius="",
    blast_radius="one host",
    reversible=True,
    untrusted_read=False,
    confirm_roles=("responder",),
    four_eyes=False,
    state=S.CONFIRMED,
    created_at=NOW,
    expires_at=NOW + LIFETIME,
    decided_by=UserId("U2"),
    decided_at=NOW,
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.mark.parametrize("before", list(S))
@pytest.mark.parametrize("after", list(S))
def test_only_the_declared_transitions_exist(before: S, after: S) -> None:
    edges = {
        (S.PENDING, S.CONFIRMED),
        (S.PENDING, S.REJECTED),
        (S.PENDING, S.EXPIRED),
        (S.PENDING, S.SUPERSEDED),
        (S.CONFIRMED, S.DISPATCHING),
        (S.CONFIRMED, S.FAILED),
        (S.CONFIRMED, S.SUPERSEDED),
        (S.DISPATCHING, S.SUCCEEDED),
        (S.DISPATCHING, S.FAILED),
        (S.DISPATCHING, S.UNKNOWN),
    }
    assert (after in LEGAL[before]) == ((before, after) in edges)


def test_an_undeclared_transition_is_refused() -> None:
    with pytest.raises(IllegalTransition):
        check_transition(S.EXPIRED, S.CONFIRMED)


@given(params=st.dictionaries(st.text(st.characters(codec="utf-8")), JSON))
def test_equal_params_have_one_text(params: dict[str, object]) -> None:
    backwards = dict(reversed(params.items()))

    assert canonical(params) == canonical(backwards)  # type: ignore[arg-type]


@given(a=st.text(alphabet="abc\n", max_size=4), b=st.text(alphabet="abc", max_size=4))
def test_the_digest_changes_with_every_part(a: str, b: str) -> None:
    whole = digest("act", "prod", canonical({"v": "1"}))

    assert digest("act" + a + "!", "prod", canonical({"v": "1"})) != whole
    assert digest("act", "prod", canonical({"v": "1" + b + "!"})) != whole


@pytest.mark.parametrize("state", [s for s in S if s not in (S.CONFIRMED, S.DISPATCHING)])
def test_no_other_state_is_a_confirmation(state: S) -> None:
    with pytest.raises(IllegalTransition):
        confirmed_from_row(replace(CONFIRMED, state=state))


@pytest.mark.parametrize("changed", [{"decided_by": None}, {"params": '{"force":true}'}])
def test_an_inconsistent_row_is_not_a_confirmation(changed: dict[str, object]) -> None:
    with pytest.raises(IllegalTransition):
        confirmed_from_row(replace(CONFIRMED, **changed))  # type: ignore[arg-type]


@pytest.mark.parametrize("proof", [None, object(), True])
def test_the_proof_cannot_be_fabricated(proof: object) -> None:
    with pytest.raises(IllegalTransition):
        ConfirmedProposal(CONFIRMED, proof)


def test_a_confirmed_row_is_the_proof() -> None:
    assert confirmed_from_row(CONFIRMED).proposal == CONFIRMED


def test_the_id_is_unique_per_call_and_content() -> None:
    ids = {
        proposal_id(TurnId("t"), "call", "d"),
        proposal_id(TurnId("t"), "call", "d"),
        proposal_id(TurnId("t"), "call", "e"),
        proposal_id(TurnId("t"), "call2", "d"),
        proposal_id(TurnId("u"), "call", "d"),
    }
    assert len(ids) == 4


@pytest.mark.parametrize(
    ("words", "rank"),
    [
        ("one host", 0),
        ("One  Service", 1),
        ("one service on the whole cluster", 2),
        ("unclear", None),
        ("", None),
    ],
)
def test_the_widest_named_radius_counts(words: str, rank: int | None) -> None:
    assert blast_rank(words) == rank
