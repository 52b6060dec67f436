"""Every line of docs/proof/runner.md names tests, and they are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "proof" / "runner.md").read_text(encoding="utf-8")
ROWS = re.findall(
    r"^- \*\*(\w+)\*\* [^`]*?(?:`[^`]*`[^`]*?)*?\n((?:  - .*\n)+)", PAGE, re.MULTILINE
)


def test_no_line_is_missing() -> None:
    promises = [*map(str, range(1, 27)), "26a", *map(str, range(27, 35)), "F1", "F2", "F3"]

    assert [number for number, _ in ROWS] == [*promises, *map(str, range(43, 61))]


@pytest.mark.parametrize(("number", "where"), ROWS)
def test_a_line_names_tests_that_exist(number: str, where: str) -> None:
    named = [name.partition("::") for name in re.findall(r"`([^`]+)`", where)]

    assert named
    for file, _, test in named:
        text = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^ *(async )?def {test}\(", text, re.MULTILINE), f"{number}: {test}"
