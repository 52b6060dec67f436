"""SIGHUP: what becomes of kortex.toml when it is read again in a running process."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bot.app.live_config import SECTIONS, LiveConfig
from bot.domain.audit import AuditEvent, AuditKind
from bot.ports.failures import StorageUnavailable
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError, load
from bot.upkeep.reload import Prepared, Reload

BEFORE = """
[roles.responder]
users = ["U1"]
[[channels]]
match = "incident-*"
confirm = ["responder"]
[[actions]]
name = "rollback-deploy"
description = "Roll back"
endpoint = { url = "http://plane/rollback", token = "first-token" }
"""


@dataclass
class AuditRows:
    """Keeps what is appended; `away` cannot be written."""

    rows: list[AuditEvent] = field(default_factory=list)
    away: bool = False

    async def append(self, event: AuditEvent) -> None:
        if self.away:
            raise StorageUnavailable("disk full")
        self.rows.append(event)

    append_with_step = append


@dataclass
class Running:
    """A process with its file, what is in force in it, and its audit log."""

    file: Path
    live_config: LiveConfig
    reload: Reload
    audit: AuditRows

    def edit(self, before: str, after: str) -> None:
        text = self.file.read_text()
        assert before in text
        self.file.write_text(text.replace(before, after))

    @property
    def seen(self) -> tuple[object, ...]:
        """All that a reload may change."""
        return (
            tuple(self.live_config.channels),
            dict(self.live_config.roles),
            tuple(self.live_config.admin_roles),
            tuple(a.rule for a in self.live_config.actions.all()),
        )


@pytest.fixture
def running(tmp_path: Path) -> Running:
    file = tmp_path / "kortex.toml"
    file.write_text(BEFORE)
    return started_from(file)


@pytest.fixture
def running_without_token(tmp_path: Path) -> Running:
    file = tmp_path / "kortex.toml"
    file.write_text(BEFORE.replace("first-token", "${LEAD}"))
    return started_from(file)


def started_from(file: Path) -> Running:
    settings = load(file, {})
    live_config, audit = LiveConfig(settings), AuditRows()
    reload = Reload(settings, lambda: load(file, {}), audit)
    reload.add("rules", SECTIONS, live_config.prepare)
    return Running(file, live_config, reload, audit)


async def test_a_reloadable_change_applies_at_once_and_is_audited(running: Running) -> None:
    running.edit('users = ["U1"]', 'users = ["U2"]')
    running.edit("Roll back", "Roll it back")
    running.edit("incident-*", "inc-*")

    assert await running.reload.run()

    assert running.live_config.roles["responder"].users == ("U2",)
    assert running.live_config.action_lines[0] == "rollback-deploy: Roll it back (*)"
    assert running.live_config.channels[0].match == "inc-*"
    (row,) = running.audit.rows
    assert row.kind is AuditKind.CONFIG_RELOADED
    assert row.body["outcome"] == "in force"
    assert row.body["changed"] == ["actions", "channels", "roles"]
    assert row.body["needs_restart"] == []


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("[roles.responder]", "[roles.responder", "not valid TOML"),
        ('users = ["U1"]', 'user = ["U1"]', "unknown key"),
        ('confirm = ["responder"]', 'confirm = ["nobody"]', "'nobody' is not defined"),
        ("http://plane/rollback", "http://{plane}/rollback", "endpoint.url"),
        ("first-token", "second-token", "has a new secret; restart Kortex to use it"),
    ],
)
async def test_an_unusable_file_changes_nothing_and_the_refusal_is_audited(
    running: Running, before: str, after: str, why: str
) -> None:
    seen = running.seen
    running.edit(before, after)

    assert not await running.reload.run()

    assert running.seen == seen
    (row,) = running.audit.rows
    assert row.body["outcome"] == "refused"
    assert why in str(row.body["why"])
    assert "second-token" not in str(row.body)


@pytest.mark.parametrize(
    ("before", "after", "key"),
    [
        ("Roll back", "Roll back ${LEAD}", "actions.0.description"),
        ('"first-token"', '"${LEAD}"', "actions.0.endpoint.token"),
        ('"first-token"', '"first-token${LEAD}"', "actions.0.endpoint.token"),
    ],
)
async def test_a_variable_missing_from_this_process_is_refused_by_name(
    running: Running, before: str, after: str, key: str
) -> None:
    seen = running.seen
    running.edit(before, after)

    assert not await running.reload.run()

    assert running.seen == seen
    assert running.audit.rows[0].body == {
        "outcome": "refused",
        "why": f"{key} is read from the environment variable LEAD, which this process does not "
        "have: restart it with that variable",
    }


async def test_a_variable_of_the_rules_file_is_reported_like_one_of_the_configuration(
    running: Running,
) -> None:
    rules = running.file.with_name("reflexes.toml")
    rules.write_text(
        '[[reflexes]]\nname = "restart"\ndescription = "Restart"\nproducts = ["a"]\n'
        'endpoint = { url = "http://plane/restart", token = "${LEAD}" }\n'
    )
    running.file.write_text(f"[reflexes]\nfile = '{rules}'\n" + running.file.read_text())

    assert not await running.reload.run()

    why = str(running.audit.rows[0].body["why"])
    assert why.startswith("reflexes.0.endpoint.token is read from the environment variable LEAD")


async def test_a_variable_of_a_table_that_needs_a_restart_is_named_until_then(
    running: Running,
) -> None:
    running.file.write_text('[platform]\nurl = "${LEAD}"\n' + running.file.read_text())
    running.edit('users = ["U1"]', 'users = ["U2"]')

    assert await running.reload.run()
    assert await running.reload.run()

    assert running.live_config.roles["responder"].users == ("U2",)
    told = [(r.body["needs_restart"], r.body["not_in_environment"]) for r in running.audit.rows]
    words = (
        "platform.url is read from the environment variable LEAD, which this process does not "
        "have: restart it with that variable"
    )
    assert told == [(["platform"], [words])] * 2


async def test_a_variable_missing_at_the_start_may_be_moved_but_not_duplicated(
    running_without_token: Running,
) -> None:
    running = running_without_token
    other = '[[actions]]\nname = "{}"\ndescription = "Other"\nendpoint = {{ url = "http://plane/o"{} }}\n'
    running.edit("[[actions]]", other.format("first", "") + "[[actions]]")
    assert await running.reload.run()

    running.edit("[[actions]]", other.format("second", ', token = "${LEAD}"') + "[[actions]]")
    assert not await running.reload.run()


async def test_a_removed_variable_may_not_return(
    running_without_token: Running,
) -> None:
    running = running_without_token
    running.edit('token = "${LEAD}"', 'token = ""')
    assert await running.reload.run()

    running.edit('token = ""', 'token = "${LEAD}"')
    assert not await running.reload.run()


async def test_a_secret_known_at_the_start_may_return(running: Running) -> None:
    running.edit("first-token", "")
    assert await running.reload.run()
    running.edit('token = ""', 'token = "first-token"')
    assert await running.reload.run()


async def test_a_change_that_needs_a_restart_is_named_until_then(running: Running) -> None:
    running.file.write_text("[llm]\nmax_tool_depth = 3\n" + running.file.read_text())

    assert await running.reload.run()
    assert await running.reload.run()

    assert [row.body["needs_restart"] for row in running.audit.rows] == [["llm"], ["llm"]]


async def test_a_reloadable_part_of_a_table_needs_no_restart(running: Running) -> None:
    running.file.write_text("[llm.tools.get_logs]\ntimeout = '7s'\n" + running.file.read_text())

    assert await running.reload.run()
    assert running.live_config.tool_timeouts["get_logs"] == 7.0
    running.edit("7s", "8s")
    running.file.write_text("[llm]\nmax_tool_depth = 3\n" + running.file.read_text())
    assert await running.reload.run()

    told = [(row.body["changed"], row.body["needs_restart"]) for row in running.audit.rows]
    assert told == [(["llm.tools"], []), (["llm.tools"], ["llm"])]


async def test_without_its_audit_row_nothing_is_applied(running: Running) -> None:
    seen = running.seen
    running.audit.away = True
    running.edit('users = ["U1"]', 'users = ["U2"]')

    assert not await running.reload.run()
    assert running.seen == seen

    running.audit.away = False
    assert await running.reload.run()
    assert running.live_config.roles["responder"].users == ("U2",)


async def test_one_refusing_part_stops_the_whole_reload(running: Running) -> None:
    async def refuses(_settings: Settings) -> Prepared:
        raise ConfigurationError("plugins: the folder is gone")

    running.reload.add("plugins", ["plugins"], refuses)
    seen = running.seen
    running.edit('users = ["U1"]', 'users = ["U2"]')

    assert not await running.reload.run()
    assert running.seen == seen


@pytest.fixture
def other_part(running: Running) -> Callable[[], asyncio.Queue[str]]:
    def add() -> asyncio.Queue[str]:
        told: asyncio.Queue[str] = asyncio.Queue()

        async def prepare(_settings: Settings) -> Prepared:
            return Prepared(lambda: told.put_nowait("in force"), {"loaded": 2})

        running.reload.add("plugins", ["plugins"], prepare)
        return told

    return add


async def test_every_request_reloads_every_part(
    running: Running, other_part: Callable[[], asyncio.Queue[str]]
) -> None:
    told, asked = other_part(), asyncio.Event()
    asked.set()
    async with running.reload.at_each(asked):
        assert await asyncio.wait_for(told.get(), 10) == "in force"
        asked.set()
        assert await asyncio.wait_for(told.get(), 10) == "in force"

    assert running.audit.rows[0].body["parts"] == {"plugins": {"loaded": 2}}


async def test_a_part_with_a_bug_does_not_end_the_process(
    running: Running, other_part: Callable[[], asyncio.Queue[str]]
) -> None:
    broken, asked = asyncio.Event(), asyncio.Event()

    async def breaks(_settings: Settings) -> Prepared:
        broken.set()
        raise RuntimeError("a bug")

    running.reload.add("buggy", [], breaks)
    async with running.reload.at_each(asked):
        asked.set()
        await asyncio.wait_for(broken.wait(), 10)
        await asyncio.sleep(0)

    assert running.audit.rows == []
