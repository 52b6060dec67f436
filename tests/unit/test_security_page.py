"""Every promise of the security page names tests, and they are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "proof" / "security.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^- (.+(?:\n  [^ -].*)*)\n((?:  - .*\n)+)", PAGE, re.MULTILINE)
TOLD = " ".join(
    (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    for page in ("security", "confirm", "audit")
)
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
def test_every_named_test_exists(file: str, name: str) -> None:
    assert f"def {name}(" in (ROOT / file).read_text()


def test_promised_and_proved_rules_are_the_same() -> None:
    promised = " ".join(TOLD.split())

    assert [rule for rule, _ in ROWS if " ".join(rule.split()) not in promised] == []
    assert len(PAGE.split("## What a Confirm proves")[1].split("##")[0].split("\n- ")) > 12


@pytest.mark.parametrize("file", sorted(set(re.findall(r"`(tests/[\w/]+\.py)", PAGE))))
def test_every_named_test_file_exists(file: str) -> None:
    assert TEST.search((ROOT / file).read_text())
