"""Lines folded into templates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.log_templates import MAX_CHARS, named_in, template_of


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
        ('{"msg": "lost 3", "trace_id": "a1", "op": "GET"}', '{"op": "PUT", "msg": "lost 4"}'),
        ('{"ts": 1, "log": {"message": "cut off"}, "user": "ann', '{"ts": 22, "log": {"message": "cut off"}, "user": "bob"}'),
        ('level=error msg="lost" user="ann"', 'level=error msg="lost" user="bob"'),
        ('{"status": 500, "path": "/a"}', '{"status": 503, "path": "/b"}'),
    ],
)  # fmt: skip
def test_lines_that_differ_only_in_values_share_a_template(one: str, other: str) -> None:
    assert template_of(one) == template_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("connection refused by payments", "connection refused by inventory"),
        ("pool exhausted", "pool drained"),
        ("NullPointerException at Cart", "TimeoutException at Cart"),
        ("failed\n  at x\nCaused by: refused", "failed\n  at x\nCaused by: no route"),
        ('{"msg": "refused"}', '{"msg": "drained"}'),
        ('{"msg": "failed", "error": "no route"}', '{"msg": "failed", "error": "EOF"}'),
        ('level=error msg="refused"', 'level=error msg="drained"'),
        ('{"status": 500}', '{"retries": 500}'),
    ],
)
def test_lines_with_different_words_have_two_templates(one: str, other: str) -> None:
    assert template_of(one) != template_of(other)


@given(st.text(max_size=5000))
def test_any_line_has_a_short_template(line: str) -> None:
    assert len(template_of(line)) <= MAX_CHARS


def test_part_of_a_name_is_not_the_name() -> None:
    assert named_in("payments-db is down", ["payments", "db"]) == ()
