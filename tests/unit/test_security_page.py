"""Every promise of the security page names tests, and they are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = re.findall(
    r"^\| ([^|]+) \| (`tests/[^|]+) \|$", (ROOT / "docs/security.md").read_text(), re.MULTILINE
)

PAGE = (ROOT / "docs/security.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))

TEST = re.compile(r"^(async def test_|def test_|Test\w+ = )", re.MULTILINE)


def test_the_page_has_its_table() -> None:
    assert len(ROWS) >= 35


@pytest.mark.parametrize(("rule", "where"), ROWS)
def test_a_rule_names_tests_that_exist(rule: str, where: str) -> None:
    named = re.findall(r"`([^`]+)`", where)

    assert named
    files = [name.partition("::")[0] for name in named]
    assert [file for file in files if not TEST.search((ROOT / file).read_text())] == []


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_test_that_is_named_is_there(file: str, name: str) -> None:
    assert f"def {name}(" in (ROOT / file).read_text()


def test_every_promise_of_a_confirm_names_its_test() -> None:
    table = PAGE.split("| a Confirm proves that | figure | test |", 1)[1].split("\n\n", 1)[0]
    rows = [row for row in table.splitlines() if row.startswith("| ") and "`tests/" in row]

    assert len(rows) == len([row for row in table.splitlines() if row.startswith("| ")]) >= 12


@pytest.mark.parametrize("file", sorted(set(re.findall(r"`(tests/[\w/]+\.py)", PAGE))))
def test_a_file_of_tests_that_is_named_is_there(file: str) -> None:
    assert TEST.search((ROOT / file).read_text())
