"""Settings are called in messages and pages what they are called in kortex.toml."""

import ast
import re
from pathlib import Path

import pytest

from bot.settings.keys import every_key
from bot.settings.model import Settings
from bot.settings.reflexes import ReflexFile

ROOT = Path(__file__).parents[4]
SOURCES = sorted(
    path
    for package in ("bot", "adapters", "tools")
    for path in (ROOT / package).rglob("*.py")
    if "simulator" not in path.parts
)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NAME = "NAME"
KEYS = {
    path[:length]
    for shape in (Settings, ReflexFile)
    for path in every_key(shape)
    for length in range(1, len(path) + 1)
}
FIRST = {path[0] for path in KEYS}
BRACKETED = re.compile(
    r"(?<![\w\]])\[\[?([a-z_]+(?:\.(?:[a-z_]+|[A-Z]+|\*|\"[^\"]+\"|<\w+>|\{[^}]*\}))*)\]\]?"
    r"(?:`? `?([a-z]+(?:_[a-z]+)+))?"
)
DOTTED = re.compile(r"^(?:--\w+: )?([a-z_]+(?:\.[a-z_]+)+): ")


def literals(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def _known(path: tuple[str, ...]) -> bool:
    """Where the operator chooses a name, any name will do."""
    return any(
        len(key) == len(path)
        and all(said == "*" or have in (NAME, said) for have, said in zip(key, path, strict=True))
        for key in KEYS
    )


def wrong(text: str) -> list[str]:
    found = []
    for table, key in BRACKETED.findall(text):
        path = tuple(re.findall(r'"[^"]+"|[^.]+', table))
        if (path[0] not in FIRST and not key) or path[-1] in ("md", "toml"):
            continue  # a word in brackets, a link
        if not _known(path) or (key and not _known((*path, key))):
            found.append(f"[{table}] {key}".strip())
    dotted = None if "%s" in text else DOTTED.match(text)  # the name of a log record
    if dotted and dotted[1].split(".")[0] in FIRST and not _known(tuple(dotted[1].split("."))):
        found.append(dotted[1])
    return found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see `[llm] max_tool_dept`", ["[llm] max_tool_dept"]),
        ("set [lllm] max_tool_depth", ["[lllm] max_tool_depth"]),
        ("[observe.log] is missing", ["[observe.log]"]),
        ("slack.bot_tokn: is empty", ["slack.bot_tokn"]),
        ("[llm] max_tool_depth, [roles.NAME.oncall], `[llm.providers.anthropic] api_key`", []),
        ("slack.bot_token: is empty [redacted] [policy] denies it", []),
    ],
)
def test_an_unknown_setting_name_is_found(text: str, found: list[str]) -> None:
    assert wrong(text) == found


def test_messages_name_settings_that_exist() -> None:
    told = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in SOURCES
        for text in literals(path)
        for name in wrong(text)
    }
    assert told == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_name_settings_that_exist(page: Path) -> None:
    assert [name for line in page.read_text("utf-8").splitlines() for name in wrong(line)] == []
