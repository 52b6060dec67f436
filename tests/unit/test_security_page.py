"""Every promise of the security page names tests, and they are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = re.findall(
    r"^\| ([^|]+) \| (`tests/[^|]+) \|$", (ROOT / "docs/security.md").read_text(), re.MULTILINE
)

TEST = re.compile(r"^(async def test_|def test_|Test\w+ = )", re.MULTILINE)


def test_the_page_has_its_table() -> None:
    assert len(ROWS) >= 7


@pytest.mark.parametrize(("rule", "where"), ROWS)
def test_a_rule_names_tests_that_exist(rule: str, where: str) -> None:
    named = re.findall(r"`([^`]+)`", where)

    assert named
    assert [name for name in named if not TEST.search((ROOT / name).read_text())] == []
