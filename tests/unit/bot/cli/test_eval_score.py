"""The scores of `kortex eval`: right answers, false all-clears, and cases left out."""

import pytest

from adapters.recorded.packs.plain_rules import PlainAnswer
from bot.cli.eval.score import Result, Tally, Truth, table, words_held

PRODUCTS = ("web", "cart", "db", "cache")
FAULT = Truth(healthy=False, culprit=("db",), mechanism_words=(("pool", "connections"), ("full",)))
HEALTHY = Truth(healthy=True)


def result(verdict: str, *suspects: str, answer: str = "") -> Result:
    return Result("c", verdict, suspects, 1.0, 4, answer, tokens=10, cost_usd_micros=7)


def tally(*pairs: tuple[Truth, Result]) -> dict[str, object]:
    one = Tally("shop")
    for truth, answer in pairs:
        one.add(PRODUCTS, truth, answer)
    return dict(one.as_json())


def test_first_and_third_suspect_count_apart() -> None:
    found = tally((FAULT, result("cause", "DB")), (FAULT, result("cause", "web", "cart", "db")))

    assert (found["top_1"], found["top_3"]) == (0.5, 1.0)


def test_all_clear_on_a_fault_is_counted_against_the_faults() -> None:
    found = tally((FAULT, result("healthy")), (HEALTHY, result("healthy")))

    assert (found["false_all_clear"], found["faults"], found["healthy"]) == (1.0, 1, 1)


@pytest.mark.parametrize("answer", [result("cause"), result("symptoms", "web")])
def test_cause_or_suspect_on_a_healthy_day_is_a_false_alarm(answer: Result) -> None:
    assert tally((HEALTHY, answer))["false_alarm"] == 1.0


@pytest.mark.parametrize("answer", [result("unknown"), result("symptoms")])
def test_empty_answer_is_abstained_and_not_an_alarm(answer: Result) -> None:
    found = tally((HEALTHY, answer))

    assert (found["abstained"], found["false_alarm"]) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("answer", "share"),
    [
        ("the pool is FULL", 1.0),
        ("connections", 0.5),
        ("nothing", 0.0),
        ("pool full, blame DNS", 0.0),
    ],
)
def test_words_are_shares_of_groups_and_a_forbidden_one_scores_zero(
    answer: str, share: float
) -> None:
    assert words_held(FAULT.model_copy(update={"forbidden": ("dns",)}), answer) == share


def test_chance_equals_a_random_draw() -> None:
    found = tally((FAULT, result("unknown")))

    assert (found["chance_1"], found["chance_3"]) == (0.25, 0.75)


def test_share_of_nothing_is_absent() -> None:
    found = tally((HEALTHY, result("healthy")))

    assert (found["top_1"], found["false_all_clear"], found["words"]) == (None, None, None)


@pytest.mark.parametrize(
    ("answer", "right", "wrong_blame"),
    [
        (result("cause", "db", answer="the pool is full"), 1.0, 0.0),
        (result("cause", "db", answer="the pool"), 0.0, 0.0),
        (result("cause", "web", "db", answer="the pool is full"), 0.0, 1.0),
        (result("symptoms", answer="the pool is full"), 0.0, 0.0),
    ],
)
def test_right_means_culprit_first_with_the_mechanism(
    answer: Result, right: float, wrong_blame: float
) -> None:
    found = tally((FAULT, answer))

    assert (found["right"], found["wrong_blame"]) == (right, wrong_blame)


def test_plain_rules_are_counted_next_to_the_answers() -> None:
    one = Tally("shop")
    silent = PlainAnswer("healthy", ())
    for truth, plain in ((FAULT, PlainAnswer("cause", ("web", "DB"))), (FAULT, silent)):
        one.add(PRODUCTS, truth, result("cause", "db"), plain)
    one.add(PRODUCTS, HEALTHY, result("healthy"), PlainAnswer("cause", ("web",)))
    found = one.as_json()

    assert (found["plain_1"], found["plain_3"]) == (0.0, 0.5)
    assert (found["plain_all_clear"], found["plain_alarm"]) == (0.5, 1.0)


def test_table_has_a_line_for_each_set_and_its_anchor() -> None:
    one = Tally("shop")
    one.add(PRODUCTS, FAULT.model_copy(update={"anchor": "the paper: .9"}), result("cause", "db"))
    lines = table([one])

    assert lines[0].split()[:3] == ["set", "faults", "top-1"]
    assert lines[1].split()[:3] == ["shop", "1", "1.00"]
    assert lines[2] == "shop: the paper: .9"
