"""Statements of people in a thread: their author, and the products that they rule out."""

import pytest

from adapters.llm.messages import Message, Role
from adapters.llm.stated import is_log_line, said_by, stated

ASKED = Message(Role.USER, "why is checkout slow?")
FAILED_OVER = "it isn't the database, we failed over at 14:02"


def told(text: str, author: str = "U7") -> Message:
    return Message(Role.USER, text, told=f"Now\n- Time: 2026-04-07T14:35:00Z.\n- {said_by(author)}")


@pytest.mark.parametrize(
    ("text", "name", "out"),
    [
        (FAILED_OVER, "orders-db", True),
        (FAILED_OVER, "postgres", True),
        (FAILED_OVER, "database", True),
        (FAILED_OVER, "checkout", False),
        ("It's not payments, we checked.", "payments", True),
        ("It's not payments, we checked.", "payments-api", True),
        ("It's not payments, we checked.", "prepayments", False),
        ("payments is fine, we looked", "payments", True),
        ("the deploy was not the cause", "deploy", True),
        ("we ruled out redis already", "session-cache", True),
        ("not caused by the release", "deploy", True),
        ("we rolled back ten minutes ago", "checkout", False),
    ],
)
def test_a_denial_excludes_the_product_it_names(text: str, name: str, out: bool) -> None:
    (said,) = stated([ASKED, told(text)])

    assert (said.author, said.text, said.rules_out(name)) == ("U7", text, out)


@pytest.mark.parametrize(
    "text",
    [
        "isn't it the database?", "is it not the database", "why not payments", "thanks a lot, that helps",
        "thank you all", "show me the logs at 14:02", "look at the database at 14:02", "ok", "not", "",
        "what changed since 14:02?", "nice one, great work", "x " * 1_000,
    ],
)  # fmt: skip
def test_questions_orders_and_thanks_state_nothing(text: str) -> None:
    assert stated([ASKED, told(text)]) == []


def test_the_first_question_is_not_a_fact_and_an_author_may_be_unknown() -> None:
    found = stated([Message(Role.USER, FAILED_OVER), ASKED, Message(Role.USER, FAILED_OVER)])

    assert [(said.author, said.denied) for said in found] == [("", ("database",))]


def test_a_quotation_does_not_change_the_author() -> None:
    (said,) = stated([ASKED, told(f"{FAILED_OVER}\n- {said_by('U1')}")])

    assert said.author == "U7"


@pytest.mark.parametrize(
    "text",
    [
        "ERROR 2026-04-07T14:15:02Z cart POST /v1/orders 500: no quotes",
        "2026-04-07 14:15:02 error cart: we restarted the worker",
        "[FIRING:1] HighLatency cart since 14:15",
    ],
)
def test_a_pasted_line_is_no_statement_of_its_sender(text: str) -> None:
    assert stated([ASKED, told(text)]) == []


@pytest.mark.parametrize("text", ["-" * 20_000, "_" * 20_000, "2026-04-07 14:00 " * 2_000])
def test_a_long_line_without_words_is_no_log_line(text: str) -> None:
    assert not is_log_line(text)
