"""What of a model's answer fits a phone: a headline, five lines, and no word changed."""

import re
import textwrap
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.claims import Claim, ClaimState
from bot.domain.phone_screen import MOST_LINES, phone_screen, screen_of, whole_of
from tests.golden.slack_views import finished

HEADLINE = "The pool of checkout is exhausted since 23:01 UTC [E1]."
TABLE = "\n".join(
    ["| Pod | Status |", "|---|---|", *(f"| checkout-{n} | Running |" for n in range(30))]
)
CODE = "\n".join(["```sh", *(f"echo {n}" for n in range(60)), "```"])
ITEMS = [f"- service-{n} runs {n} pods" for n in range(40)]
PROSE = "It has 20 connections and slow queries hold all of them [E2]."
CJK = "结账服务自23:01起变慢，原因是连接池耗尽。"
RTL = "الخدمة بطيئة منذ 23:01 بسبب امتلاء مجمع الاتصالات."

ANSWERS = {
    "prose": (f"{HEADLINE} {' '.join([PROSE] * 12)}", HEADLINE),
    "one endless sentence": (f"The pool {'grew and ' * 400}fell", "The pool grew and"),
    "ten headings": (
        "\n\n".join(
            f"## Part {n}\n\nPart {n} is slow [E{n}].\n\n- one\n- two" for n in range(1, 11)
        ),
        "**Part 1:** Part 1 is slow [E1].",
    ),
    "a table": (f"{HEADLINE}\n\n{TABLE}\n\n- all pods run [E2]", HEADLINE),
    "begins with a table": (f"{TABLE}\n\n{HEADLINE}", HEADLINE),
    "begins with a heading": (f"# Findings\n\n{HEADLINE}\n\n{CODE}", f"**Findings:** {HEADLINE}"),
    "a heading that says it": (f"# {HEADLINE}\n\n{CODE}", HEADLINE),
    "begins with an empty line": (f"\n\n{HEADLINE}\n\n{CODE}", HEADLINE),
    "long code": (f"{HEADLINE}\n\n{CODE}\n\n{PROSE}", HEADLINE),
    "unclosed code": (f"{HEADLINE}\n\n```\n{'x' * 900}", HEADLINE),
    "forty items": (f"{HEADLINE}\n\n" + "\n".join(ITEMS), HEADLINE),
    "only items": ("\n".join(ITEMS), "service-0 runs 0 pods"),
    "nested items": (
        f"{HEADLINE}\n" + "\n".join(f"{'  ' * (n % 4)}- step {n}" for n in range(20)),
        HEADLINE,
    ),
    "only a table": (TABLE, "**Pod · Status**"),
    "only code": (CODE, "**60 lines of code**"),
    "Chinese": (CJK * 20, CJK),
    "Arabic": (" ".join([RTL] * 20), RTL),
    "rules and quotes": (f"{HEADLINE}\n\n---\n\n" + "\n".join(["> quoted words"] * 20), HEADLINE),
}
SHAPE = st.sampled_from(
    ["# Part\n", "- one [E1]\n", "  - two\n", "1. three\n", "| a | b |\n", "|---|---|\n", "```\n", "~~~\n", "\n", "x " * 90,
     "It fell [E2]. ", "~~It rose~~ (⚠ E1 says: 5) ", "\n⚠ E1 failed\n", "**", "`", "[a](b", "> quote\n", CJK, RTL, "---\n",
     "\u2028", "\ud800", "\x00", "9" * 30],
)  # fmt: skip


def rows(text: str) -> int:
    return sum(max(1, len(textwrap.wrap(line, 45))) for line in text.split("\n"))


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


@pytest.mark.parametrize(("text", "headline"), ANSWERS.values(), ids=ANSWERS)
def test_a_long_answer_begins_with_its_headline_and_fits_a_screen(text: str, headline: str) -> None:
    screen = phone_screen(text)

    assert screen.text.startswith(headline)
    assert rows(screen.text) <= 17
    assert screen.more > 0
    assert "|---" not in screen.text


@pytest.mark.parametrize(("text", "_headline"), ANSWERS.values(), ids=ANSWERS)
def test_at_most_five_lines_of_evidence_follow(text: str, _headline: str) -> None:
    shown = [line for line in phone_screen(text).text.split("\n") if line.strip()]

    assert sum(line.lstrip().startswith("- ") for line in shown) <= MOST_LINES


@pytest.mark.parametrize(
    "text",
    [
        HEADLINE,
        f"{HEADLINE}\n\n- p99 rose [E2]\n- errors rose [E3]",
        f"{HEADLINE} {PROSE}\n\nRun this:\n\n```sh\nkubectl get pods\n```",
        f"{HEADLINE}\n\n### Evidence\n\n- p99 rose [E2]",
        f"{CJK}\n\n- {CJK}",
        "",
        "\n",
    ],
)
def test_an_answer_that_fits_is_shown_as_it_is(text: str) -> None:
    assert (phone_screen(text).text, phone_screen(text).more) == (text, 0)


def test_code_that_does_not_fit_is_not_cut() -> None:
    screen = phone_screen(f"{HEADLINE}\n\n```sh\n" + "kubectl get\n" * 6 + "```\n\nThen look.")

    assert screen.text == f"{HEADLINE}\n\nThen look."


def test_a_line_that_a_check_contradicts_keeps_its_mark_where_it_is_cut() -> None:
    text = (
        f"~~{'Checkout is well and ' * 40}~~ (⚠ E1 says: 5 % fail)\n\n- p99 rose (⚠ not in E2: 3)"
    )
    screen = phone_screen(text)

    assert "…~~ (⚠ E1 says: 5 % fail)\n" in screen.text
    assert "- p99 rose (⚠ not in E2: 3)" in screen.text
    assert screen.doubts == 0


def test_the_marks_of_lines_without_room_are_counted() -> None:
    items = "\n".join(f"- item {n} (⚠ not in E1: {n})" for n in range(9))
    code = "```\nx = 1\ny\nz\na\nb\nc\n```\n⚠ E1 failed"

    assert phone_screen(f"{HEADLINE}\n\n{code}\n\n{items}").doubts == 5


@given(st.lists(SHAPE, max_size=40))
def test_no_text_of_a_model_makes_anything_up(pieces: list[str]) -> None:
    text = "".join(pieces)
    screen = phone_screen(text)
    own = {"line", "lines", "of", "code"} | {str(n) for n in range(100)}

    # A word that is cut is the beginning of one.
    assert all(any(w.startswith(one) for w in words(text)) for one in set(words(screen.text)) - own)
    assert screen.text.count("(⚠ ") + screen.text.count("\n⚠ ") + screen.doubts >= text.count("(⚠ ")


@given(st.lists(SHAPE, max_size=40))
def test_any_text_of_a_model_fits_a_screen_or_is_whole(pieces: list[str]) -> None:
    text = "".join(pieces)
    screen = phone_screen(text)

    assert rows(screen.text) <= 24 or screen.text == text


@pytest.mark.parametrize("name", sorted(ANSWERS.keys() - {"only a table", "only code"}))
def test_a_screen_grows_at_its_end_only(name: str) -> None:
    text, _ = ANSWERS[name]
    grown = [phone_screen(text[:n], is_final=False).text for n in range(0, len(text), 5)]
    pairs = [*pairwise(grown), (grown[-1], phone_screen(text).text)]

    # A word that is not complete may go again, before it is shown.
    assert [
        later for earlier, later in pairs if not later.startswith(earlier.rpartition(" ")[0])
    ] == []


def test_what_was_said_before_the_last_result_is_not_on_the_screen() -> None:
    long = f"{HEADLINE}\n\n{TABLE}"
    final = finished(text=f"Let me look.\n\n{long}", narration="Let me look.\n\n")

    assert screen_of(final).text == HEADLINE
    assert screen_of(final).more == phone_screen(long).more + 1
    assert whole_of(final) == final.text


def test_what_was_said_before_the_last_result_stays_where_all_of_it_fits() -> None:
    final = finished(text=f"Let me look.\n\n{HEADLINE}", narration="Let me look.\n\n")

    assert (screen_of(final).text, screen_of(final).more) == (final.text, 0)


def test_the_whole_answer_says_how_its_statements_were_checked() -> None:
    states = [ClaimState.SUPPORTED, ClaimState.CONTRADICTED, ClaimState.UNCHECKED]
    claims = tuple(Claim("It fell.", (1,), state) for state in [*states, ClaimState.SUPPORTED])
    text = f"{HEADLINE}\n\n{TABLE}"

    assert whole_of(finished(text=text, claims=claims)) == (
        f"{text}\n\nStatements: 2 supported, 1 contradicted, 1 not checked."
    )


def test_an_answer_without_a_model_stays_as_it_is() -> None:
    final = finished(text="\n".join(ITEMS), provider="triage")

    assert (screen_of(final).text, whole_of(final)) == (final.text, "")
