"""`kortex check` probes every part in time, says how to mend each, and sends no request offline."""

import asyncio
import errno
import socket
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web
from cryptography.fernet import Fernet

from bot.cli.check import time_budget
from bot.cli.check.backends import check_port
from bot.cli.check.parts import PARTS, examine
from bot.cli.check.time_budget import (
    AFTER_S,
    PART_S,
    PROBE_S,
    SHARED_S,
    process_age,
    shorten_waits,
    within,
)
from bot.domain.ids import TeamId, UserId
from bot.ports.installations import Installed
from bot.privacy.token_seal import TokenSeal
from bot.reports.finding import Finding
from bot.settings.model import Settings
from bot.settings.reading import parse
from bot.store.database import Database
from bot.store.installations import StoredInstallations
from tests.fixtures_http import serving
from tests.kortex_command import run

EVERYTHING = """
[slack]
bot_token = "xoxb-1"
app_token = "xapp-1"
api_base_url = "{there}/api/"
[http]
port = 0
alertmanager_token = "t"
[database]
url = "sqlite+aiosqlite:///{folder}/kortex.db"
[audit]
key = "0123456789abcdef0123456789abcdef"
events_url = "{there}/events"
checkpoint_url = "{there}/checkpoints/{{size}}"
checkpoint_file = "{folder}/nowhere/checkpoints.txt"
checkpoint_channel = "C0AUDIT001"
[llm]
default_provider = "openai"
triage_fallback = false
[llm.providers.openai]
api_key = "k"
base_url = "{there}"
model = "m"
[observe.logs]
kind = "loki"
url = "{there}"
[observe.metrics]
kind = "prometheus"
url = "{there}"
[observe.traces]
kind = "jaeger"
url = "{there}"
[control_plane]
kind = "http"
info_url = "{there}/products/{{product}}/info"
[platform]
kind = "http"
url = "{there}"
[platform.connections.everybody]
users = ["*"]
token = "t"
[patterns]
folder = "{folder}/nowhere"
[oidc]
issuer = "{there}"
audience = "kortex"
[otel]
endpoint = "{there}"
[plugins]
folder = "{folder}/nowhere"
[mcp.servers.tickets]
command = ["/nowhere/tickets"]
[roles.responder.oncall]
kind = "json"
url = "{there}"
path = "[]"
[[channels]]
match = "incident-*"
products = ["checkout"]
confirm = ["responder"]
[[alerts]]
name = "all"
channel = "C0ALERTS01"
[[actions]]
name = "rollback"
description = "d"
products = ["*"]
endpoint = {{ url = "{there}/rollback" }}
"""
IMPORTED = time.monotonic()
EXAMPLE = Path(__file__).parents[2] / "docs" / "kortex.example.toml"
ASKED = {
    "slack", "audit events", "audit checkpoints", "provider openai", "logs", "metrics", "traces",
    "control plane", "platform everybody", "patterns", "plugin nowhere", "mcp tickets",
    "on call responder", "otel", "oidc",
}  # fmt: skip


def everything(there: str, folder: Path) -> Settings:
    return parse(EVERYTHING.format(there=there, folder=folder), "kortex.toml", {})


def failed(found: list[Finding]) -> dict[str, Finding]:
    return {each.part: each for each in found if each.fails}


@pytest.fixture
async def silent() -> AsyncIterator[str]:
    """Takes connections and says nothing."""

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(listen, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_silent_parts_are_not_waited_for_and_each_row_says_what_to_do(
    tmp_path: Path, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_budget, "PART_S", 0.6)
    monkeypatch.setattr(time_budget, "SHARED_S", 0.4)

    started = time.monotonic()
    found = await examine(everything(silent, tmp_path))

    assert time.monotonic() - started < 9  # one part alone would wait for ten seconds
    bad = failed(found)
    assert bad.keys() >= {
        "slack", "roles", "audit places", "providers", "observe", "control plane", "platform", "actions",
    }  # fmt: skip
    assert [each.part for each in bad.values() if not each.mend] == []


def test_the_longest_wait_leaves_six_of_fifteen_seconds_for_start_up() -> None:
    one_after_the_other = max(SHARED_S + AFTER_S, PROBE_S)

    assert (one_after_the_other < PART_S, PART_S) == (True, 9.0)


@pytest.mark.parametrize(("age_s", "waits_s"), [(0.0, 9.0), (3.5, 9.0), (5.5, 7.0), (60.0, 5.0)])
async def test_a_slow_start_shortens_every_wait_equally(age_s: float, waits_s: float) -> None:
    shorten_waits(age_s)

    assert within(PART_S) == pytest.approx(waits_s)
    assert within(PROBE_S) / within(PART_S) == pytest.approx(PROBE_S / PART_S)


async def test_a_silent_part_is_reported_with_its_actual_wait(
    tmp_path: Path, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_budget, "LEAST_S", 0.9)

    found = await examine(everything(silent, tmp_path), age_s=lambda: 60.0)

    assert failed(found)["slack"].detail == "no answer within 0.55 s"


def test_the_age_of_this_process_is_measured() -> None:
    imported = time.monotonic() - IMPORTED
    age_s = process_age()
    before, at = age_s(), time.monotonic()
    time.sleep(0.05)

    assert before > imported
    assert age_s() - before == pytest.approx(time.monotonic() - at, abs=0.02)


async def test_a_silent_backend_hides_no_other_of_the_same_part(
    tmp_path: Path, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_budget, "PROBE_S", 0.3)
    monkeypatch.setattr(time_budget, "PROBE_S", 0.3)
    monkeypatch.setattr(time_budget, "SHARED_S", 0.3)
    monkeypatch.setattr(time_budget, "MCP_END_S", PART_S - 0.3)
    text = EVERYTHING.format(there=silent, folder=tmp_path).replace("nowhere/checkpoints", "kept")
    text = text.replace("/nowhere/tickets", "/bin/cat")

    found = {each.part: each for each in await examine(parse(text, "kortex.toml", {}))}

    assert found["audit checkpoints"].ok
    assert found.keys() >= {
        "audit events", f"actions at {silent}", "mcp tickets", "toolset investigate", "channel incident-*",
    }  # fmt: skip


def test_a_name_server_outage_delays_no_other_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(time_budget, "PART_S", 3.0)
    back = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: back.wait(30) and [])
    (tmp_path / "runbooks").mkdir()
    text = EVERYTHING.format(there="http://away.test", folder=tmp_path)
    config = tmp_path / "kortex.toml"
    config.write_text(text.replace(f"{tmp_path}/nowhere", f"{tmp_path}/runbooks"))

    started = time.monotonic()
    run("check", "--json", "--config", str(config))
    back.set()

    assert time.monotonic() - started < 20
    found = {each["part"]: each for each in orjson.loads(capsys.readouterr().out)}
    assert (found["patterns"]["ok"], found["database"]["ok"]) == (True, True)


async def test_each_refused_part_has_its_own_row(tmp_path: Path) -> None:
    asked: list[str] = []

    async def refuse(request: web.Request) -> web.StreamResponse:
        asked.append(f"{request.method} {request.path} {await request.text()}")
        return web.Response(status=500)

    async with serving(refuse) as there:
        bad = failed(await examine(everything(there, tmp_path)))

    assert bad.keys() >= ASKED
    assert [each.part for each in bad.values() if not each.mend] == []
    assert "POST /events []" in asked
    assert {
        each.split()[0] for each in asked if "rollback" in each or "checkpoints" in each
    } == set()
    assert bad["audit checkpoints"].detail.endswith("cannot be written by this user")


async def test_control_planes_and_sinks_are_reached_and_receive_nothing(tmp_path: Path) -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(f"{request.method} {request.path}")
        here = str(request.url.origin())
        key = {"kty": "OKP", "crv": "Ed25519", "x": "A" * 43}
        return web.json_response({"issuer": here, "jwks_uri": f"{here}/keys", "keys": [key]})

    async with serving(answer) as there:
        found = {each.part: each for each in await examine(everything(there, tmp_path))}

    assert (found["audit events"].ok, found["otel"].ok) == (True, True)
    assert found["oidc"].detail == "the issuer answers; 1 usable keys"
    assert "POST /v1/traces" in asked
    assert found["control plane"].detail == "http answers (asked for the state of checkout)"
    assert found[f"actions at {there}"].detail.endswith("nothing sent): rollback")
    assert "GET /products/checkout/info" in asked
    assert {each for each in asked if each.startswith(("PUT", "POST /rollback"))} == set()


async def test_each_workspace_that_installed_the_app_is_asked_with_its_own_token(
    tmp_path: Path,
) -> None:
    key, lost = (Fernet.generate_key().decode() for _ in range(2))
    more = f'client_id = "1"\nclient_secret = "s"\ntoken_keys = ["{key}"]\n[http]'

    async def slack(request: web.Request) -> web.StreamResponse:
        good = request.headers["Authorization"] == "Bearer xoxb-good"
        return web.json_response({"ok": good, "error": "token_revoked"})

    async with serving(slack) as there:
        text = EVERYTHING.format(there=there, folder=tmp_path).replace("[http]", more, 1)
        unkeyed = text.replace('key = "0123456789abcdef0123456789abcdef"', "", 1)
        settings = parse(unkeyed, "kortex.toml", {})
        await examine(settings)  # its schema
        database = await Database.open(settings.database.url.get_secret_value())
        for team, token, sealed_by in (
            ("TGOOD", "xoxb-good", key), ("TGONE", "xoxb-gone", key), ("TLOST", "xoxb-lost", lost),
        ):  # fmt: skip
            installed = Installed(TeamId(team), UserId("U1"), "B1", token)
            await StoredInstallations(database, TokenSeal([sealed_by])).save(installed, "U2")
        await database.close()
        found = {each.part: each for each in await examine(settings)}

    assert found["workspaces"].detail == "3 installed, 1 answer"
    assert found["workspace TGONE"].detail == "auth.test: token_revoked"
    assert "decrypts its token" in found["workspace TLOST"].detail
    assert "workspace TGOOD" not in found


@asynccontextmanager
async def no_connections(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[Any]]:
    """Every try to look up a name, to connect, to send or to start a program, refused."""
    tried: list[Any] = []

    def refuse(*arguments: Any, **_: Any) -> Any:
        tried.append(arguments)
        raise OSError(errno.ENETUNREACH, "no packet leaves")

    with monkeypatch.context() as patch:
        for name in ("connect", "connect_ex", "sendto", "bind"):
            patch.setattr(socket.socket, name, refuse)
        patch.setattr(socket, "getaddrinfo", refuse)
        patch.setattr(asyncio, "create_subprocess_exec", refuse)
        yield tried


@pytest.mark.parametrize("offline", [True, False])
async def test_offline_no_packet_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offline: bool
) -> None:
    async with no_connections(monkeypatch) as tried:
        found = await examine(everything("http://nowhere.test", tmp_path), offline=offline)

    assert (tried == []) is offline
    assert (failed(found).keys() == {"plugin nowhere"}) is offline
    assert (tmp_path / "kortex.db").exists() is not offline


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ('[slack]\nbot_token = "xapp-1"\napp_token = "xoxb-1"', "are swapped"),
        ('[observe.logs]\nkind = "loki"\nurl = "loki"', "observe.logs.url: needs an address"),
        ('[llm]\ndefault_provider = "gpt"', "gpt"),
        ('[kubernetes]\nkind = "kubeconfig"\nkubeconfig = "/nowhere"', "kubernetes: "),
        ('[adapters.tickets]\nurl = "http://t"', "adapters.tickets: no tool asks it"),
        ('[llm.privacy]\nlocal_only = true\n[observe.logs]\nkind = "loki"\nurl = "https://l.test"',
         "l.test is not declared local"),
    ],
)  # fmt: skip
async def test_offline_checks_everything_readable(wrong: str, words: str) -> None:
    bad = failed(await examine(parse(wrong, "kortex.toml", {}), offline=True))

    assert [each.mend != "" for each in bad.values() if words in each.detail] == [True]


async def test_a_missing_environment_variable_is_reported_with_how_to_load_it() -> None:
    url = "postgresql+asyncpg://kortex:${NO_SUCH_PASSWORD}@127.0.0.1:9/kortex"
    found = await examine(parse(f'[database]\nurl = "{url}"', "kortex.toml", {}), offline=True)

    (told,) = [each for each in found if each.part == "environment"]
    assert (told.mark, told.detail) == (
        "WARNING", "database.url: the environment has no NO_SUCH_PASSWORD",
    )  # fmt: skip
    assert "kortex.env" in told.mend


@pytest.mark.parametrize(
    ("provider", "name", "warned"),
    [("triage", "undo", True), ("triage", "rollback-deploy", False), ("ollama", "undo", False)],
)
async def test_a_triage_that_could_propose_no_action_is_reported(
    provider: str, name: str, *, warned: bool
) -> None:
    action = f'[[actions]]\nname = "{name}"\ndescription = "d"\nendpoint = {{ kind = "rehearsal" }}'
    found = await examine(
        parse(f'[llm]\ndefault_provider = "{provider}"\n{action}', "kortex.toml", {}), offline=True
    )

    told = [each.detail for each in found if each.part == "actions of triage" and each.mend]
    assert (told == ["triage proposes only rollback-deploy, but no action has that name"]) == warned


async def test_the_unedited_reference_configuration_contacts_nothing_and_passes(
    tmp_path: Path,
) -> None:
    text = EXAMPLE.read_text(encoding="utf-8").replace("port = 3000", "port = 0")
    text = text.replace(
        "sqlite+aiosqlite:///kortex.db", f"sqlite+aiosqlite:///{tmp_path}/kortex.db"
    )

    found = await examine(parse(text, "kortex.toml", {}))

    assert failed(found) == {}
    assert {each.part for each in found if each.warning} == {"slack"}


async def test_a_backends_reply_shows_no_secret_and_moves_no_cursor(tmp_path: Path) -> None:
    async def echo(_request: web.Request) -> web.StreamResponse:
        return web.Response(status=400, text="bad \x1b[2Jtoken loki-secret-token of")

    async with serving(echo) as there:
        backend = f'kind = "loki"\nurl = "{there}"\ntoken = "loki-secret-token"'
        text = f"[observe.logs]\n{backend}\n[http]\nport = 0\n[database]\n"
        text += f'url = "sqlite+aiosqlite:///{tmp_path}/kortex.db"'
        (logs,) = failed(await examine(parse(text, "kortex.toml", {}))).values()

    assert "token [secret] of" in logs.detail
    assert "\x1b" not in logs.detail


def test_every_part_says_what_to_do() -> None:
    assert [part.name for part in PARTS if not part.mend.endswith(".")] == []
    assert [part.name for part in PARTS if not (part.ask or part.read)] == []


async def test_the_port_row_distinguishes_free_ours_and_foreign() -> None:
    async def other(_request: web.Request) -> web.StreamResponse:
        return web.Response(text="hello")

    async def ours(_request: web.Request) -> web.StreamResponse:
        return web.json_response({"status": "up"})

    async with serving(other) as theirs, serving(ours) as us:
        told = [
            await _port_finding(int(each.rpartition(":")[2]), check_port)
            for each in (theirs, us, "http://127.0.0.1:0")
        ]

    assert [each.ok for each in told] == [False, True, True]
    assert "in use by another process" in told[0].detail
    assert "a Kortex answers" in told[1].detail
    assert told[2].detail.endswith("for health checks, the API, the page")


async def _port_finding(port: int, check: Any) -> Finding:
    class Of:
        settings = Settings.model_validate({"http": {"port": port}})

    class Asked:
        of = Of()

    (found,) = await check(Asked())
    assert isinstance(found, Finding)
    return found
