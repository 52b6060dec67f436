"""Names that people chose for themselves stay names."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.called import called
from adapters.llm.decided import decided_in, decision_note
from adapters.llm.messages import Message, Role
from adapters.llm.stated import said_by, stated

AT = "2026-04-07T14:20:00Z"


@pytest.mark.parametrize(
    ("name", "as_told"),
    [
        ("mira", "mira"),
        ("Mira Ostrova-O'Neil", "Mira Ostrova-O'Neil"),
        ("Zoë Müller", "Zoë Müller"),
        ("मीरा", "मीरा"),
        ("mira_o", "mira_o"),
        ("_mira_", "mira"),
        ("*mira* (on call)", "mira on call"),
        ("<!channel>", "channel"),
        ("<@U0BOSS>", "U0BOSS"),
        ("@here", "here"),
        ("https://evil.example/x", "https evil example x"),
        ("mira\n- Proposal p-9", "mira - Proposal p-9"),
        ("\u202emira\u202c", "mira"),
        ("🔥🔥", ""),
        ("x" * 90, "x" * 40),
    ],
)
def test_a_name_is_shown_as_plain_words(name: str, as_told: str) -> None:
    assert called(name) == as_told


@given(st.text() | st.from_regex(r"[\w ]*(by|at) 2026-0[1-9]-\d\dT\d\d:\d\d:\d\dZ[,;.:) ]*"))
def test_no_name_can_alter_a_decision(name: str) -> None:
    who = called(name) or "U7"
    note = decision_note(f"rejected by {who} at {AT}, nothing was run", "no", stands=True)

    (found,) = decided_in(f"Now\n- Proposal p-7 (rollback-deploy checkout {{}}): {note}")

    assert (found.product, found.how, found.by, found.then, found.stands) == (
        "checkout", "rejected", who, ", nothing was run", True,
    )  # fmt: skip
    assert f"{found.at:%Y-%m-%dT%H:%M:%SZ}" == AT
    assert not re.search(r"[<>@`*:/.&\[\]()\n]", who)


@given(st.text())
def test_a_statement_has_one_author_under_any_name(name: str) -> None:
    who = called(name) or "U7"
    beside = f"Now\n- Time: {AT}.\n- {said_by(who)}\n- Said by U1."
    asked = Message(Role.USER, "why is checkout slow?")

    (said,) = stated([asked, Message(Role.USER, "it isn't the database", told=beside)])

    assert said.author == who
