"""Which kinds of lines are new, grown or gone, measured by the load of their product."""

import pytest

from tools.analysis.log_changes import Line, changed_patterns, level_of


def lines(text: str, before: int, after: int, level: str = "info") -> list[Line]:
    early = [Line("cart", level, text, False, float(n)) for n in range(before)]
    return early + [Line("cart", level, text, True, 1000.0 + n) for n in range(after)]


def changes(*found: list[Line]) -> dict[str, str]:
    usual = lines("took 5 ms", 60, 60)
    patterns = changed_patterns(
        [*usual, *(line for of_one in found for line in of_one)],
        before_s=60,
        after_s=60,
        products=("cart", "payments"),
    )
    return {pattern.example: pattern.change for pattern in patterns}


def test_new_grown_and_gone_are_told_apart() -> None:
    found = changes(lines("refused", 0, 3), lines("retrying", 5, 40), lines("heartbeat", 40, 0))

    assert found == {"refused": "new", "retrying": "grown", "heartbeat": "gone"}


def test_lines_that_grow_with_the_load_of_their_product_did_not_change() -> None:
    twice = [*lines("took 5 ms", 60, 240), *lines("retrying", 10, 40)]

    assert list(changed_patterns(twice, before_s=60, after_s=60)) == []


def test_rare_line_that_is_not_there_is_no_silence() -> None:
    assert changes(lines("nightly job", 3, 0)) == {}


def test_names_of_others_are_told() -> None:
    (found,) = changed_patterns(
        lines("cannot reach payments", 0, 3), before_s=60, after_s=60, products=("cart", "payments")
    )

    assert found.names == ("payments",)


@pytest.mark.parametrize(
    ("level", "text", "expected"),
    [
        ("WARNING", "x", "warn"),
        ("", "2026 ERROR no route", "error"),
        ("unknown", "replication lag exceeded 600 seconds", "error"),
        ("", "instance is available", ""),
        ("info", "0 failed", "info"),
    ],
)
def test_level_is_the_one_told_then_the_lines_own_then_its_words(
    level: str, text: str, expected: str
) -> None:
    assert level_of(level, text) == expected
