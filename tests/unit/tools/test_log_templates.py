"""Lines folded into templates, and which of these are news."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.capabilities import LogLine
from tools.log_templates import MAX_CHARS, Change, Window, named_in, patterns_of, template_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("16:48:16.545 INFO took 31 ms", "09:00:01.1 INFO took 7 ms"),
        ("2026-11-22T10:00:00Z boom", "2026-11-22 11:30:00,123 boom"),
        ("user ann@example.com failed", "user bob@example.org failed"),
        ("dial tcp 10.0.0.1:5432: refused", "dial tcp 10.9.8.7:6379: refused"),
        ("order 4f2c8e0a-1111-4222-8333-444455556666 lost", "order 00000000-aaaa-4bbb-8ccc-ddddeeeeffff lost"),
        ("key 'alpha beta' missing", "key 'c' missing"),
        ("TraceID: 88ebfbcebbbc0884eabd9178e1808940 timeout", "TraceID: 12 timeout"),
        ("commit 1a2b3c4d5e6f is bad", "commit 9f8e7d6c5b4a is bad"),
        ("retry 1 of 3 after 2.5s", "retry 2 of 3 after 10s"),
        ("list [1, 2, 3] full", "list [4, 5] full"),
    ],
)  # fmt: skip
def test_lines_that_differ_in_values_alone_are_one(one: str, other: str) -> None:
    assert template_of(one) == template_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("connection refused by payments", "connection refused by inventory"),
        ("pool exhausted", "pool drained"),
        ("NullPointerException at Cart", "TimeoutException at Cart"),
        ("failed\n  at x\nCaused by: refused", "failed\n  at x\nCaused by: no route"),
    ],
)
def test_lines_that_say_other_things_are_two(one: str, other: str) -> None:
    assert template_of(one) != template_of(other)


@given(st.text(max_size=5000))
def test_any_line_has_a_short_template(line: str) -> None:
    assert len(template_of(line)) <= MAX_CHARS


def lines(text: str, number: int, at: int = 0, **fields: str) -> list[LogLine]:
    level, host = fields.get("level", "error"), fields.get("host", "h1")
    return [LogLine(at + n, level, host, f"{text} {n}") for n in range(number)]


def window(seconds: float, counts: dict[str, int] | None = None, **of: list[LogLine]) -> Window:
    return Window(of, counts or {name: len(found) for name, found in of.items()}, seconds)


@pytest.mark.parametrize(
    ("now", "before", "change"),
    [(1, 0, "new"), (30, 10, "grown"), (10, 10, "steady"), (4, 1, "steady"), (0, 40, "gone")],
)
def test_change_is_judged_by_what_would_have_come(now: int, before: int, change: Change) -> None:
    found = patterns_of(
        window(1800, cart=lines("boom", now)), window(3600, cart=lines("boom", before)), []
    )
    assert [(one.change, one.count, one.before) for one in found] == [(change, now, before)]


def test_silence_that_may_be_chance_is_not_told() -> None:
    assert patterns_of(window(1800), window(3600, cart=lines("boom", 6)), []) == []


def test_new_errors_come_first() -> None:
    now = window(
        1800,
        cart=[*lines("usual", 50), *lines("new warning", 9, level="warn"), *lines("new error", 2)],
    )
    found = patterns_of(now, window(3600, cart=lines("usual", 100)), [])
    assert [one.template for one in found] == ["new error <n>", "new warning <n>", "usual <n>"]


def test_lines_that_were_not_read_are_counted() -> None:
    now = window(1800, {"cart": 1000}, cart=lines("boom", 100))
    (found,) = patterns_of(now, window(3600), [])
    assert found.count == 1000


def test_pattern_names_hosts_and_products() -> None:
    of = [LogLine(5, "error", host, "payments-db refused payments") for host in ("a", "b", "a")]
    (found,) = patterns_of(window(60, cart=of), window(60), ["cart", "payments", "payments-db"])
    assert found.hosts == ("a", "b")
    assert found.names == ("payments", "payments-db")


def test_part_of_a_name_is_not_the_name() -> None:
    assert named_in("payments-db is down", ["payments", "db"]) == ()
