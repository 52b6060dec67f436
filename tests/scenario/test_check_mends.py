"""`kortex check`: what each failed row says to do fits why it failed, and names that row's own settings."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from adapters.fault import Fault
from bot.cli.check.mending import Mending
from bot.cli.check.parts import PARTS, examine
from bot.reports.finding import Finding
from bot.settings.reading import parse
from tests.fixtures_database import postgres_url
from tests.fixtures_http import serving

__all__ = ["postgres_url"]

# Rows whose other side answers over HTTP, and the part that each belongs to.
ROWS = {
    "slack": "slack",
    "on call responder": "roles",
    "audit events": "audit places",
    "provider openai": "providers",
    "logs": "observe",
    "metrics": "observe",
    "traces": "observe",
    "control plane": "control plane",
    "platform everybody": "platform",
    "deploys gitlab": "deploys",
    "oidc": "oidc",
    "otel": "otel",
}
# These are only connected to: any server will do.
CONNECTED = {"audit checkpoints": "audit places", "actions": "actions", "adapter own": "adapters"}
CONFIGURED = """
[slack]
bot_token = "xoxb-1"
app_token = "xapp-1"
api_base_url = "{there}/api/"
[database]
url = "sqlite+aiosqlite:///{folder}/kortex.db"
[audit]
events_url = "{there}/events"
checkpoint_url = "{there}/checkpoints"
[llm]
default_provider = "openai"
fallback_providers = []
[llm.providers.openai]
api_key = "k"
model = "gpt-5-mini"
base_url = "{there}"
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
[deploys.gitlab]
kind = "gitlab"
url = "{there}"
token = "t"
projects = ["shop/checkout"]
[oidc]
issuer = "{there}"
audience = "kortex"
[otel]
endpoint = "{there}"
[roles.responder.oncall]
kind = "json"
url = "{there}"
path = "[]"
[adapters.own]
url = "{there}"
[[actions]]
name = "rollback"
description = "d"
products = ["*"]
endpoint = {{ url = "{there}/rollback" }}
"""


async def rows(there: str, folder: Path) -> dict[str, Finding]:
    text = CONFIGURED.format(there=there, folder=folder)
    found = await examine(parse(text, "kortex.toml", {}))
    return {each.part.partition(" at ")[0]: each for each in found}


def mends(found: dict[str, Finding], wanted: dict[str, str]) -> dict[str, str]:
    return {row: found[row].mend for row in wanted}


MENDING = {part.name: part.mending for part in PARTS if part.mending}


def expected(fault: Fault, wanted: dict[str, str]) -> dict[str, str]:
    return {row: MENDING[part].of(fault) for row, part in wanted.items()}


@asynccontextmanager
async def answering(status: int) -> AsyncIterator[str]:
    async def answer(_request: web.Request) -> web.StreamResponse:
        return web.json_response({}, status=status)

    async with serving(answer) as there:
        yield there


@asynccontextmanager
async def closed() -> AsyncIterator[str]:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("status", "fault", "well"),
    [
        (401, Fault.CREDENTIAL, set()),
        (403, Fault.RIGHT, set()),
        (404, Fault.ABSENT, {"traces", "control plane"}),  # asked for what no one has
        (429, Fault.LIMIT, set()),
        (503, Fault.BROKEN, set()),
    ],
)
async def test_the_servers_answer_decides_the_advice(
    tmp_path: Path, status: int, fault: Fault, well: set[str]
) -> None:
    wanted = {row: part for row, part in ROWS.items() if row not in well}
    async with answering(status) as there:
        found = await rows(there, tmp_path)

    assert mends(found, wanted) == expected(fault, wanted)
    assert all(found[row].ok for row in {*CONNECTED, *well})


async def test_a_closed_port_is_not_reported_as_a_token_problem(tmp_path: Path) -> None:
    async with closed() as there:
        found = await rows(there, tmp_path)

    assert mends(found, ROWS | CONNECTED) == expected(Fault.CLOSED, ROWS | CONNECTED)


async def test_an_unknown_host_is_not_reported_as_a_token_problem(tmp_path: Path) -> None:
    found = await rows("http://backend.invalid", tmp_path)

    assert mends(found, ROWS | CONNECTED) == expected(Fault.NAME, ROWS | CONNECTED)


async def test_a_server_without_tls_is_not_reported_as_a_token_problem(tmp_path: Path) -> None:
    async with answering(200) as there:
        found = await rows(there.replace("http:", "https:"), tmp_path)

    assert mends(found, ROWS | CONNECTED) == expected(Fault.TLS, ROWS | CONNECTED)


@pytest.mark.parametrize(
    ("url", "fault"),
    [("127.0.0.1:1", Fault.CLOSED), ("database.invalid", Fault.NAME)],
)
async def test_an_unreachable_database_is_not_reported_as_a_schema_problem(
    url: str, fault: Fault
) -> None:
    text = f'[database]\nurl = "postgresql+asyncpg://kortex:secret@{url}/kortex?sslmode=disable"'

    found = {each.part: each for each in await examine(parse(text, "kortex.toml", {}))}

    assert found["database"].mend == MENDING["database"].of(fault)


@pytest.mark.parametrize(
    ("name", "fault"), [("nobody@/postgres", Fault.CREDENTIAL), ("postgres@/none", Fault.ABSENT)]
)
async def test_a_database_login_failure_is_not_reported_as_a_schema_problem(
    postgres_url: str, name: str, fault: Fault
) -> None:
    address = f"postgresql://{name}?{postgres_url.partition('?')[2]}"
    text = f'[database]\nurl = "{address}"'

    found = {each.part: each for each in await examine(parse(text, "kortex.toml", {}))}

    assert found["database"].mend == MENDING["database"].of(fault)


def test_every_fault_has_advice() -> None:
    words = {fault: Mending("[x] url", "its token").of(fault) for fault in Fault}

    assert [w for w in words.values() if not w.endswith(".")] == []
    assert [f for f, w in words.items() if "token" in w] == [Fault.CREDENTIAL, Fault.RIGHT]
