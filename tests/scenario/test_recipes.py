"""The recipes of CONTRIBUTING.md, followed on a copy of the source: what they name is enough."""

import json
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import JsonValue

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PACKAGES = ("bot", "adapters", "tools", "migrations")


pytestmark = pytest.mark.may_block_the_loop


class Scratch:
    """A copy of the product where a recipe may change only what it names."""

    def __init__(self, folder: Path, recipe: str, *changed: str) -> None:
        """Packages that are not `changed` are the source's own."""
        self.folder = folder
        self.recipe = re.split(r"\n\*\*|\n## ", TEXT.split(f"**{recipe}**")[1])[0]
        for package in changed:
            shutil.copytree(ROOT / package, folder / package)  # with what was compiled already
        for package in {*PACKAGES} - {*changed}:
            (folder / package).symlink_to(ROOT / package)
        (folder / "kortex.toml").write_text(
            f'[database]\nurl = "sqlite+aiosqlite:///{folder}/kortex.db"\n'
        )

    def _named(self, path: str) -> Path:
        """Where it is, if the recipe names it, its own name as `<name>`."""
        written = [re.escape(each) for each in re.findall(r"`([\w./<>-]+)`", self.recipe)]
        patterns = [re.sub(r"<\w+>", r"[a-z0-9_]+", each) for each in written]
        assert any(re.fullmatch(each, path) for each in patterns), (
            f"the recipe does not name {path}"
        )
        return self.folder / path

    def write(self, path: str, text: str) -> None:
        self._named(path).write_text(text, encoding="utf-8")

    def edit(self, path: str, old: str, new: str) -> None:
        file = self._named(path)
        text = file.read_text(encoding="utf-8")
        assert text.count(old) == 1
        file.write_text(text.replace(old, new), encoding="utf-8")

    def configure(self, more: str) -> None:
        with (self.folder / "kortex.toml").open("a", encoding="utf-8") as file:
            file.write(more)

    def kortex(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "bot", *arguments]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, check=False, timeout=60, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def tools_of(scratch: Scratch) -> dict[str, dict[str, JsonValue]]:
    report = json.loads(scratch.kortex("tools", "--json"))["report"]
    return {tool["id"]: tool for tool in report["tools"]}


CLOCK = (ROOT / "tools" / "core" / "get_current_time.py").read_text(encoding="utf-8")


def renamed(source: str, name: str) -> str:
    camel = name.title().replace("_", "")
    text = source.replace("get_current_time", name).replace("GetCurrentTime", camel)
    return text.replace("CurrentTime", camel)


def test_a_tool_is_one_file(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path, "Add a tool", "tools")
    scratch.write("tools/core/count_days.py", renamed(CLOCK, "count_days"))

    assert tools_of(scratch)["core__count_days"]["reason"] == ""
    for page in ("docs/tools.md", "docs/proof/tools.md", "tests/unit/tools/core/"):
        assert f"`{page}`" in scratch.recipe


PORT = '''
class Tickets(Protocol):
    """Counts tickets."""

    async def count(self) -> str:
        """How many are open."""
        ...


TICKETS = Port[Tickets]("tickets")


class CountTickets'''
ADAPTER = '''"""Tickets over HTTP."""

import httpx


class HttpTickets:
    """Implements `Tickets`."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def count(self) -> str:
        """Asks."""
        return (await self._client.get("/count")).text
'''


def test_a_tool_with_a_new_capability_is_one_more_file_and_one_line(tmp_path: Path) -> None:
    scratch = Scratch(
        tmp_path, "Add a tool that asks something outside", "tools", "adapters", "bot"
    )
    tool = renamed(CLOCK, "count_tickets").replace("class CountTickets:", f"{PORT}:")
    tool = tool.replace('"clock"', "TICKETS")
    tool = tool.replace("instant_text(caps.clock.now())", "await caps.of(TICKETS).count()")
    tool = tool.replace("\n\nfrom tools", "\n\nfrom typing import Protocol\n\nfrom tools", 1)
    tool = tool.replace("from tools.prod", "from tools.port import Port\nfrom tools.prod")
    (tmp_path / "tools" / "core" / "count_tickets.py").write_text(tool)  # the recipe above
    scratch.write("adapters/own/tickets.py", ADAPTER)
    bindings = "bot/app/backend_kinds.py"
    imports = "from adapters.own.tickets import HttpTickets\nfrom tools.core.count_tickets import TICKETS\n"
    scratch.edit(
        bindings, "from tools.port import Port\n", f"{imports}from tools.port import Port\n"
    )
    scratch.edit(bindings, "BINDINGS: Bindings = {}", "BINDINGS: Bindings = {TICKETS: HttpTickets}")

    scratch.configure('[adapters.tickets]\nurl = "http://127.0.0.1:9"\n')

    assert tools_of(scratch)["core__count_tickets"]["reason"] == ""


def test_a_provider_is_one_file_and_one_line(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path, "Add a model provider", "adapters")
    toy = (ROOT / "tests" / "fakes" / "toy_provider.py").read_text(encoding="utf-8")
    scratch.write("adapters/llm/toy.py", toy)
    registry = "adapters/llm/registry.py"
    port = "from adapters.llm.port import Provider\n"
    scratch.edit(registry, port, f"{port}from adapters.llm.toy import Toy\n")
    scratch.edit(
        registry, '    "anthropic": Anthropic,\n', '    "anthropic": Anthropic,\n    "toy": Toy,\n'
    )
    scratch.configure('[llm]\ndefault_provider = "toy"\n[llm.providers.toy]\napi_key = "k"\n')

    rows = json.loads(scratch.kortex("providers", "--json"))["providers"]

    (row,) = [row for row in rows if row["name"] == "toy"]
    assert (row["available"], row["turn"]) == (True, 1)


MIGRATION = '''"""A table."""

import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "{head}"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table("lunches", sa.Column("day", sa.Text, primary_key=True))


def downgrade() -> None:
    """Not offered: restore a backup instead."""
    raise NotImplementedError
'''


def test_a_migration_is_one_file(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path, "Add a migration", "migrations")
    head = max(path.name for path in (ROOT / "migrations" / "versions").glob("[0-9]*.py"))[:4]
    scratch.write("migrations/versions/9999_lunches.py", MIGRATION.format(head=head))

    assert scratch.kortex("migrate") == "the schema is at 9999\n"
    with sqlite3.connect(tmp_path / "kortex.db") as database:
        assert database.execute("SELECT count(*) FROM lunches").fetchone() == (0,)
