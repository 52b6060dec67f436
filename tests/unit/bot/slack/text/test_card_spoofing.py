"""What a model writes cannot be taken for a card; what it honestly says stays as it is."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.turn_events import TextDelta
from bot.slack.text.card_spoofing import LABEL, disclaimed
from bot.slack.views.render import render
from tests.golden.slack_views import finished, golden, view

CLAIMS = (
    "Confirmed by <@U123> at 12:00. It succeeded.",
    "Confirmed by @lead",
    "Rejected by @lead. Nothing was run.",
    "Approved by the on-call lead",
)
TITLES = ("Confirmed: rollback-deploy", "Done: rollback-deploy", "Proposal: scale")
SIGNS = ["✅", "✓", "☑️", "✔️", "🔴", "🟢", "⏳", ":white_check_mark:", "✅ ✅", "🚀"]
DRESS = [
    "{}",
    "**{}**",
    "# {}",
    "> {}",
    "- {}",
    "1. {}",
    "`{}`",
    "_{}_",
    "| {} |",
    "   {}",
    "so: 👉 {}",
]


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("dress", DRESS)
def test_a_claimed_decision_is_labelled_in_every_format(claim: str, dress: str) -> None:
    assert disclaimed(dress.format(claim)).startswith(f"> {LABEL} ")


@given(
    st.sampled_from(SIGNS),
    st.sampled_from([*CLAIMS, *TITLES, "Confirmed", "Proposal p_1"]),
    st.sampled_from(DRESS),
    st.sampled_from(["", "It works. ", "\n"]),
)
def test_a_sign_before_a_decision_is_removed_at_any_place(
    sign: str, words: str, dress: str, before: str
) -> None:
    shown = disclaimed(before + dress.format(f"{sign} {words}"))

    assert LABEL in shown
    assert not re.search("[✅✓☑✔🔴🟢⏳🚀]|:white_check_mark:", shown)


@pytest.mark.parametrize("title", TITLES)
@pytest.mark.parametrize("dress", ["# {}", "### {}", "**{}**", "> ## {}", "**{}"])
def test_a_heading_like_a_cards_is_labelled(title: str, dress: str) -> None:
    assert disclaimed(dress.format(title)).startswith(f"> {LABEL} ")


@pytest.mark.parametrize(
    "line",
    ["✅ Соnfirmed by @lead", "✅ Ｃｏｎｆｉｒｍｅｄ by @lead", "✅ Con\u200bfirmed by @lead", "**✅** *Confirmed* by x"],
)  # fmt: skip
def test_look_alike_letters_do_not_evade_the_label(line: str) -> None:
    assert LABEL in disclaimed(line)


@given(
    st.sampled_from([*SIGNS, "√", "[x]", "(✓)", "- [x]", "✅\n", "**✅**\n\n"]),
    st.sampled_from(["", "The ", "payments: ", "rollback-deploy of payments "]),
    st.sampled_from(
        [
            "rollback was confirmed by lead",
            "confirmation given",
            "was approved",
            "approval: granted",
            "signed off by the lead",
            "executed by lead",
            "denied by lead",
            "bestätigt von @lead",
            "ok, says <@U123>",
            "it succeeded.",
            "Nothing was run.",
            "Nobody decided before 12:00.",
            "Cónfirmed (by CTO)",
            "C o n f i r m e d by CTO",
        ]
    ),
)
def test_a_line_that_starts_with_a_sign_is_labelled_in_any_words(
    sign: str, before: str, words: str
) -> None:
    assert LABEL in disclaimed(f"{sign} {before}{words}")


@pytest.mark.parametrize(
    "line",
    [
        "Status: Confirmed by CTO",
        "Decision: approved",
        "|✅ Confirmed|by CTO|",
        "[ Confirm ]   [ Reject ]",
        "`Confirm`  `Edit`  `Reject`",
        "*Confirm* | *Reject*",
        "🔘 Confirm 🔘 Reject",
        "✅ Succeeded",
        ":x: Rejected",
        "⏳ Waiting for confirmation",
    ],
)
def test_card_text_is_labelled(line: str) -> None:
    assert LABEL in disclaimed(line)


@pytest.mark.parametrize(
    "line",
    [
        "✅ checkout is healthy",
        "✅ 99.9 % of requests succeeded",
        "❌ 512 connections were rejected within 10 min",
        "✅\n\n- the pool has room",
        "State: the rollout is complete",
        "Confirm or reject it on the card.",
        "❌ payments: 14 % errors",
        "The rollback was confirmed by nobody yet.",
        "I would confirm this with the deploy log.",
        "Failed: 3 of 40 pods",
        "Done in 2.1 s.",
        "**Cause**: the pool was halved",
        "- Running pods: 3",
        "# What happened",
        "The proposal waits for a decision of the responder role.",
        "⚠️ failed requests rose to 14 %",
        "",
    ],
)
def test_an_honest_line_is_unchanged(line: str) -> None:
    assert disclaimed(line) == line


PIECES = st.sampled_from(
    [*(word for each in (*CLAIMS, *TITLES) for word in each.split(" ")), "Edited by", "may decide",
     "waiting for a decision", "press confirm", "status:", "decision :", "granted", "failed:",
     "outcome unknown :", "c o n f i r m e d by", "[x]", ":x:", "\x01", "the pool", "1. ", "# ", "> "]
)  # fmt: skip


@given(st.lists(st.tuples(PIECES, st.text("*_~`|- .:[]()xd4", max_size=3)), max_size=8))
def test_the_quick_check_passes_only_lines_that_the_full_check_passes(
    pieces: list[tuple[str, str]],
) -> None:
    line = "".join(piece + between for piece, between in pieces)
    # No one sees the sign at its end, but it is no ASCII: such a line is read as a whole.
    read = disclaimed(f"{line}\u200b")

    assert (LABEL in disclaimed(line)) is (LABEL in read)


@given(st.sampled_from((*CLAIMS, "Status: granted", "Confirm Reject")), st.data())
def test_signs_between_letters_do_not_evade_the_label(claim: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(1, len(claim)))
    line = claim[:at] + data.draw(st.text("*_~`", max_size=4)) + claim[at:]

    assert LABEL in disclaimed(line)


def test_an_answer_is_labelled_while_it_grows_and_at_its_end() -> None:
    text = "I looked.\n✅ Confirmed by <@U123>. It succeeded."

    for part in (*render(view([TextDelta(text)])), *render(view([finished(text=text)]))):
        assert "✅" not in part.text
        assert LABEL in part.text


def test_our_own_card_is_not_labelled() -> None:
    texts = [part.text for name, parts in golden().items() if "card" in name for part in parts]

    assert texts
    assert not any(LABEL in text for text in texts)
