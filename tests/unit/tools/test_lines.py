"""Lines of outside text end where its writer ended them, and nothing else splits them."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sources import ROOT
from tools.output import lines_of

PRODUCT = sorted(
    path for top in ("bot", "adapters", "tools") for path in (ROOT / top).rglob("*.py")
)
# Modules that may call `splitlines`, with the reason.
ALLOWED: dict[str, str] = {}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a", ["a"]),
        ("a\n", ["a"]),
        ("a\n\n", ["a", ""]),
        ("\n", [""]),
        ("a\r\nb\rc\nd", ["a", "b", "c", "d"]),
        ("a\n\rb", ["a", "", "b"]),
        ("a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x1dh\x1ei\n", ["a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x1dh\x1ei"]),
    ],
)  # fmt: skip
def test_only_line_feeds_and_carriage_returns_end_a_line(text: str, lines: list[str]) -> None:
    assert lines_of(text) == lines


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n"))),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_lines_joined_by_a_line_end_split_into_the_same_lines(lines: list[str], end: str) -> None:
    assert lines_of("".join(line + end for line in lines)) == lines


def test_no_module_splits_text_at_more_than_its_line_ends() -> None:
    found = [
        str(path.relative_to(ROOT))
        for path in PRODUCT
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "splitlines"
    ]

    assert sorted(set(found)) == sorted(ALLOWED)
