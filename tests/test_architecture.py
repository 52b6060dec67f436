"""What imports alone cannot show, and that the import contracts catch what they are there for."""

import dataclasses
import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

from adapters.llm.messages import CompleteRequest, Message, Meta
from bot.chat.prompts import PromptFacts
from bot.domain.proposal import Proposal
from bot.domain.session import Ask
from bot.store.address import addressed
from bot.store.engines import sqlite_engine
from tests.foreign_names import reaches
from tests.sources import PACKAGES, ROOT, Source, code_lines, migrations, sources
from tools.capabilities import CallContext
from tools.operation import ProposalDraft
from tools.records import ToolInvocationRecord, ToolOutcome

MAX_CODE_LINES = 300
MAX_FUNCTION_LINES = 50
BANNED_NAMES = re.compile(r"(^|_)(utils?|helpers?|common|managers?|misc)(_|$)")
SECRET_SHAPED = re.compile(
    r"token|secret|password|credential|api_?key|authorization", re.IGNORECASE
)
# Where "anything at all went wrong" is the right question: the tool call, the listener and its side
# jobs, one answer's edits, one workspace's opening, a probe, the clock's job, an MCP server's connection, the workflow body. A
# handler that ends in `raise` hides nothing and is not counted.
BROAD_EXCEPT_SEAMS = {
    "adapters/mcp/supervisor.py",
    "bot/chat/stopping.py",
    "bot/cli/check/time_budget.py",
    "bot/chat/turn.py",
    "bot/engine/workflows.py",
    "bot/engine/lease.py",
    "bot/app/http_server.py",
    "bot/app/workspaces.py",
    "bot/upkeep/jobs.py",
    "bot/web/api/chat/surface.py",
    "bot/upkeep/reload.py",
    "bot/slack/listeners/background_tasks.py",
    "bot/slack/delivery/edit_queue.py",
    "bot/web/health.py",
    "tools/runner.py",
}


def _names(found: Iterable[Source]) -> list[str]:
    return [each.path for each in found]


def test_every_module_has_a_docstring() -> None:
    assert _names(each for each in sources() if not each.docstring) == []


def test_a_file_is_below_the_size_limit() -> None:
    # A module with fewer lines in total need not be counted: that takes seconds.
    long = (each for each in sources() if each.text.count("\n") > MAX_CODE_LINES)

    assert _names(each for each in long if code_lines(each.text) > MAX_CODE_LINES) == []


def test_a_function_is_below_the_size_limit() -> None:
    assert [
        f"{each.path}: {name}"
        for each in sources()
        for name, lines in each.functions
        if lines >= MAX_FUNCTION_LINES
    ] == []


def test_a_file_name_is_not_generic() -> None:
    assert _names(each for each in sources() if BANNED_NAMES.search(Path(each.path).stem)) == []


def test_a_package_file_contains_only_its_docstring() -> None:
    packages = [each for each in sources() if each.path.endswith("/__init__.py")]

    assert packages
    assert _names(each for each in packages if each.statements != 1) == []


def test_only_the_runner_executes_a_tool() -> None:
    callers = {
        each.path
        for each in sources()
        for call in each.calls
        if call.is_method and call.name == "execute" and call.arguments == 3
    }

    assert callers == {"tools/runner.py"}


@pytest.mark.parametrize(
    "kind",
    [
        Ask, CallContext, CompleteRequest, Message, Meta, PromptFacts, Proposal, ProposalDraft,
        ToolInvocationRecord, ToolOutcome,
    ],
)  # fmt: skip
def test_no_context_has_a_field_for_a_secret(kind: type) -> None:
    names = [f.name for f in dataclasses.fields(kind)]

    assert [n for n in names if SECRET_SHAPED.search(n) and n != "max_tokens"] == []


def test_everything_is_caught_only_at_the_seams() -> None:
    assert {each.path for each in sources() if each.catches_anything} <= BROAD_EXCEPT_SEAMS


def test_our_names_belong_to_no_other_distribution() -> None:
    owners = importlib.metadata.packages_distributions()

    assert {d for name in PACKAGES for d in owners.get(name, [])} <= {"kortex"}


def test_the_environment_is_read_in_one_place() -> None:
    readers = _names(each for each in sources() if re.search(r"os\.(environ|getenv)", each.text))

    assert readers == ["bot/settings/environment.py"]


def test_only_the_redactor_makes_redacted_text() -> None:
    made = [
        each.path
        for each in sources()
        for call in each.calls
        if call.name == "Redacted" and not call.is_literal
    ]

    assert made == ["bot/privacy/redactor.py"]


def _says_nothing(docstring: str) -> bool:
    """Fewer than three words, unless they name an error, or point at a name in backticks."""
    return len(docstring.split()) < 3 and not re.search(r"`|Raises |\w\.\w", docstring)


def test_every_docstring_adds_information() -> None:
    assert [
        f"{each.path}: {name}"
        for each in sources()
        for name, said in each.docstrings
        if _says_nothing(said)
    ] == []


def test_the_core_names_no_chat_platform() -> None:
    rooms = ("bot/domain/", "bot/chat/", "bot/actions/", "bot/engine/", "bot/ports")
    platform = re.compile(r"(?i)slack|block kit|usergroup|mrkdwn")

    assert [
        f"{each.path}:{number}"
        for each in sources()
        if each.path.startswith(rooms)
        for number, line in enumerate(each.text.splitlines(), 1)
        if platform.search(line)
    ] == []


def test_migrations_import_only_the_tables() -> None:
    imported = {module for each in migrations() for module in each.modules}
    ours = {module for module in imported if module.split(".")[0] in PACKAGES}

    assert ours
    assert {module.rsplit(".", 1)[0] for module in ours} <= {"bot.store"}


PLANTED = {
    "tools know no adapter": ("tools/policy.py", "import adapters.errors"),
    "adapters know no bot": ("adapters/errors.py", "import bot.domain.ids"),
    "the domain is free of I/O": ("bot/domain/ids.py", "import sqlalchemy"),
    "the loop is free of I/O": ("bot/chat/loop.py", "import httpx"),
    "tools are free of I/O": ("tools/policy.py", "import aiohttp"),
    "chat knows no store": ("bot/chat/turn.py", "import bot.store.tables"),
    "settings are read by the root": ("bot/slack/roles/directory.py", "import bot.settings.model"),
    "only decide dispatches": ("bot/chat/turn.py", "import bot.actions.dispatch"),
    "listeners do not dispatch": (
        "bot/slack/listeners/bolt_app.py",
        "import bot.actions.dispatch",
    ),
    "providers are strangers": ("adapters/llm/triage/plan.py", "import adapters.llm.koder_ai"),
    "dbos stays in the engine": ("bot/upkeep/jobs.py", "import dbos"),
    "type checking counts": (
        "tools/policy.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import bot.domain.ids",
    ),
    "what Slack sends knows no sending": (
        "bot/slack/ingress/clicks.py",
        "import bot.slack.delivery.outbox",
    ),
    "a new file of Slack's chooses its room": ("bot/slack/odds.py", '"""Nowhere."""'),
    "answers know no platform": ("bot/chat/turn.py", "import bot.slack.text.limits"),
    "actions know no platform": ("bot/actions/propose.py", "import bot.slack.text.limits"),
    "the demo's world is apart": ("bot/app/start.py", "import bot.demo.setup"),
    "parts know nothing of the start": ("bot/app/rules.py", "import bot.app.start"),
    "a new file of the composition root chooses its layer": ("bot/app/odds.py", '"""Nowhere."""'),
    "a new file chooses its layer": ("bot/odds.py", '"""Nowhere."""'),
}


def _lint_imports(folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def _copy(folder: Path) -> Path:
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def test_the_import_contracts_are_kept(tmp_path: Path) -> None:
    result = _lint_imports(_copy(tmp_path))

    assert result.returncode == 0, result.stdout


@pytest.fixture(scope="module")
def planted_report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is said of a copy that holds every violation at once."""
    folder = _copy(tmp_path_factory.mktemp("planted"))
    for name, line in PLANTED.values():
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")
    result = _lint_imports(folder)
    assert result.returncode == 1, result.stdout
    return " ".join(result.stdout.split())


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_violation_is_caught(planted: str, planted_report: str) -> None:
    assert _violation_of(*PLANTED[planted]) in planted_report


def _violation_of(name: str, line: str) -> str:
    """What names a violation: the import, or the file that is in no layer."""
    module = name.removesuffix(".py").replace("/", ".")
    imported = re.search(r"import (\S+)$", line)
    return f"{module} -> {imported[1]} " if imported else f"- {module} "


# By file: why it must reach into a library, and the issue upstream that would end it.
FOREIGN_NAMES: dict[str, str] = {}


def test_libraries_are_used_by_their_public_names() -> None:
    found = reaches()

    assert [str(each) for each in found if each.path not in FOREIGN_NAMES] == []
    assert FOREIGN_NAMES.keys() - {each.path for each in found} == set()


REACHED = {
    "import lib._inner": "imports lib._inner",
    "from lib._inner import name": "imports lib._inner.name",
    "from lib import _name": "imports lib._name",
    "import lib\nlib.thing._name": "uses lib.thing._name",
    "import lib\nlib.thing.name = print": "sets lib.thing.name",
    "import lib\ndel lib.name": "sets lib.name",
    "from lib import Kind\nalias = Kind\nalias.method = print": "sets lib.Kind.method",
    "from lib import Kind\nsetattr(Kind, 'method', print)": "setattr of Kind",
    "from lib import Kind\nobject.__setattr__(Kind(), 'a', 1)": "sets an attribute of Kind()",
    "import lib\ngetattr(lib.thing, '_name', None)": "uses lib.thing._name",
    "def f(thing):\n    thing.inner._name()": "uses thing.inner._name",
    "def f(thing):\n    thing.__class__ = int": "sets __class__",
    "import sys\nsys.meta_path.insert(0, None)": "uses sys.meta_path",
    "import sys\nsys.modules['lib'] = None": "changes sys.modules",
    "from sys import modules\nmodules.pop('lib')": "changes sys.modules",
    "import queue\nclass A(queue.Queue):\n    def f(self):\n        self._inner": "uses _inner, which no class of ours defines",
    "import queue\nclass A(queue.Queue):\n    def _put(self, item):\n        pass": "A overrides _put of queue.Queue",
    "class A:\n    def f(self, other: 'B'):\n        self._a = other._a": "uses other._a",
    "class A:\n    def f(self):\n        super()._name": "uses _name, which no class of ours defines",
}  # fmt: skip


@pytest.mark.parametrize("planted", REACHED)
def test_a_private_name_of_a_library_is_found(planted: str) -> None:
    assert REACHED[planted] in {each.what for each in reaches({"tools/planted.py": planted})}


@pytest.mark.parametrize(
    "ours",
    [
        "class A:\n    _b = 1\nclass C(A):\n    def f(self):\n        self._b",
        "class A:\n    __slots__ = ('_b',)\n    def f(self, other: 'A'):\n        self._b = other._b",
        "from tools.planted import _name",
        "import lib\nlib.name.method()\nlib._replace(a=1)",
        "import sys\nsys.modules['lib']",
        "import queue\nclass A(queue.Queue):\n    def __init__(self):\n        self._mine = 1",
    ],
)
def test_our_own_and_public_names_are_allowed(ours: str) -> None:
    assert reaches({"tools/planted.py": ours}) == []


# Each package that the product must stand on, and where it serves.
SERVES = {
    "slack-bolt": "bot/slack/",
    "aiohttp": "bot/web/",
    "pydantic": "tools/",
    "jsonschema": "tools/",
    "sqlalchemy": "bot/store/",
    "apscheduler": "bot/upkeep/",
    "httpx": "adapters/",
    "click": "bot/cli/",
    "rich": "bot/cli/",
}


def test_the_chosen_packages_are_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[\[<>=~ ]", each)[0] for each in project["dependencies"]}

    assert {*SERVES, "aiosqlite"} - names == set()


@pytest.mark.parametrize("package", SERVES)
def test_a_chosen_package_is_imported_at_run_time(package: str) -> None:
    imported = re.compile(rf"^\s*(?:import|from) {package.replace('-', '_')}\b", re.MULTILINE)

    assert any(
        each.path.startswith(SERVES[package]) and imported.search(each.text) for each in sources()
    )


def test_sqlite_is_driven_by_aiosqlite() -> None:
    assert sqlite_engine(addressed("sqlite:///kortex.db"), 1).dialect.driver == "aiosqlite"
