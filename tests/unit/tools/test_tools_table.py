"""docs/tools.md names every tool with its true timeouts, and tests that exist."""

import re
from pathlib import Path

import pytest

from bot.app.rules import TOOLSETS
from tools.contract import AnyTool
from tools.core.all import core_tools
from tools.cursor import CursorSigner

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "proof" / "tools.md").read_text(encoding="utf-8")
PROOF = dict(re.findall(r"^- `(\w+)`\n((?:  - .*\n)+)", PAGE, re.MULTILINE))
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
ROWS = {
    match[1]: match[0]
    for match in re.finditer(
        r"^\| `(\w+)` \|.*$", (ROOT / "docs" / "tools.md").read_text(encoding="utf-8"), re.MULTILINE
    )
}
TOOLS = core_tools(CursorSigner(b"k" * 32))


def test_the_table_names_exactly_the_existing_tools() -> None:
    assert list(ROWS) == list(dict.fromkeys(ROWS))
    assert set(ROWS) == set(PROOF) == {tool.contract.short_name for tool in TOOLS}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.contract.short_name)
def test_each_row_matches_the_contract(tool: AnyTool) -> None:
    row = ROWS[tool.contract.short_name]
    times = tool.contract.timeouts
    assert f"| {times.default_s:g} s / {times.ceiling_s:g} s |" in row
    tests = re.findall(r"`(tests/[\w/]+\.py)`", PROOF[tool.contract.short_name])
    assert tests
    assert [name for name in tests if not (ROOT / name).is_file()] == []


def test_every_tool_is_in_a_toolset_and_every_toolset_names_tools() -> None:
    named = {name for names in TOOLSETS.values() for name in names}
    assert named == {tool.contract.id for tool in TOOLS}


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_every_test_named_on_the_page_exists(file: str, name: str) -> None:
    assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")
