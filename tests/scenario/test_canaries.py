"""A secret in each of twelve places, read and repeated by the model: none is met anywhere again.

One bot reads all of them in one turn. Searched are every byte to Slack, to models, to backends and to
the control plane, the log, and the database file, which holds the audit log and the engine's record.
"""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.mcp.definition import Definition
from tests.fakes import kubernetes_server, mcp_server, plugin_bridge
from tests.fakes.kubernetes_server import KubernetesServer
from tests.fakes.model_server import Call, Recorded, Round
from tests.fakes.plugin_bridge import Bridge
from tests.fixtures_http import serving
from tests.fixtures_service import API_KEY, INGEST_TOKEN, on_stage
from tests.stage import Stage, results

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Those of `BARE` have no shape: they are known by where they stand, or never read at all.
CANARIES = {
    "configuration": API_KEY,
    "environment": "Vq8Lx51KwTzPm73",
    "tool result": "AKIAQ3EGRZ7YPWLM2XKD",
    "error": "sk_live_9aBcD3fGhJkLmN5pQr7T",
    "URL": "Zk81Qw5RtYu0Pm",
    "header": "Hq2LxVd93KwTzBn64Xs2",
    "plugin auth": plugin_bridge.TOKEN,
    "MCP environment": mcp_server.TOKEN,
    "Kubernetes object": "glpat-Zx81Kq5RtYu0PmWe7Hq2",
    "incident text": "hvs.CAESIKq51RtYu0PmWe7Hq2Zx9LkJhGfDs34aQw",
    "Slack message": "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "model output": "npm_a8Kq51RtYu0PmWe7Hq2Zx9LkJhGfDs34aQw",
}
BARE = ("environment", "URL", "header")
VARIABLE = "ORDERS_DATABASE"
POD = "/api/v1/namespaces/shop/pods/checkout-1"
WINDOW = {"product": "checkout", "time_range": "last 30m"}
CALLS = {
    "tool result": Call("plugin__ticket_search", {"product": "checkout"}),
    "error": Call("core__get_metrics", {**WINDOW, "metric_name": "up"}),
    "URL": Call("core__get_logs", WINDOW),
    "MCP environment": Call("mcp__tickets__ticket_search", {"product": "checkout"}),
    "Kubernetes object": Call(
        "core__kubectl_describe", {"kind": "pod", "name": "checkout-1", "namespace": "shop"}
    ),
    "incident text": Call("core__get_incident_history", {"query": "checkout rotated"}),
}


def repeat(request: Recorded) -> Round:
    read = results(request)
    if not read:
        return Round(calls=tuple(CALLS.values()))
    said = " ".join([*read, "and", *(c for place, c in CANARIES.items() if place not in BARE), "."])
    return Round(text=tuple(said[at : at + 400] for at in range(0, len(said), 400)))


async def metrics(_: web.Request) -> web.StreamResponse:
    words = f"key {CANARIES['error']} refused; sent Authorization: Bearer {CANARIES['header']}"
    headers = {"x-debug": f"Authorization: Bearer {CANARIES['header']}"}
    return web.json_response({"status": "error", "error": words}, status=422, headers=headers)


async def logs(_: web.Request) -> web.StreamResponse:
    return web.Response(text=f"no route to http://loki:{CANARIES['URL']}@loki:3100/", status=400)


def cluster() -> KubernetesServer:
    pod = {
        "kind": "Pod",
        "metadata": {"name": "checkout-1", "namespace": "shop"},
        "status": {"phase": "Failed", "message": f"pull with {CANARIES['Kubernetes object']}"},
    }
    return KubernetesServer({POD: pod})


def kubeconfig(url: str) -> str:
    token = kubernetes_server.TOKEN
    return json.dumps(
        {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "users": [{"name": "u", "user": {"token": token}}],
        }
    )


async def accepted(name: str) -> dict[str, Any]:
    """The entry that an operator accepts a tool with."""
    announced = await mcp_server.create().list_tools()
    found = next(t for t in announced if t.name == name)
    definition = Definition(found.name, found.description or "", found.input_schema)
    return {name: {"sha256": definition.sha256(), "effect": "read"}}


async def settings(folder: Path, stack: AsyncExitStack) -> dict[str, Any]:
    bridge = Bridge()
    outputs = {"key": f"{CANARIES['tool result']} for {plugin_bridge.TOKEN}"}
    bridge.answer = lambda: web.json_response({"tickets": [outputs]})
    (folder / "plugins").mkdir()
    url = await stack.enter_async_context(serving(bridge.handle))
    (folder / "plugins" / "tickets.yaml").write_text(plugin_bridge.manifest(url))
    server = await stack.enter_async_context(TestServer(cluster().app()))
    (folder / "kubeconfig").write_text(kubeconfig(str(server.make_url(""))))
    tickets = {
        "command": [sys.executable, str(Path(mcp_server.__file__))],
        "env": {"TICKETS_TOKEN": mcp_server.TOKEN},
        "tools": await accepted("ticket_search"),
    }
    return {
        "observe": {
            "logs": {"kind": "loki", "url": await stack.enter_async_context(serving(logs))},
            "metrics": {
                "kind": "prometheus",
                "url": await stack.enter_async_context(serving(metrics)),
            },
            "traces": {"kind": "none"},
        },
        "kubernetes": {
            "kind": "kubeconfig",
            "kubeconfig": str(folder / "kubeconfig"),
            "namespaces": ["shop"],
        },
        "plugins": {"folder": str(folder / "plugins")},
        "mcp": {"servers": {"tickets": tickets}},
    }


async def ingest(stage: Stage) -> None:
    event = {
        "specversion": "1.0",
        "id": "inc-1",
        "source": "pager",
        "type": "koder.incident.opened",
        "data": {
            "product": "checkout",
            "title": f"checkout rotated {CANARIES['incident text']}",
            "password": CANARIES["URL"],
        },
    }
    url = f"http://127.0.0.1:{stage.service.http_port}/ingest/v1/events"
    headers = {"Authorization": f"Bearer {INGEST_TOKEN}"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, json=event, headers=headers) as response,
    ):
        assert response.status < 300, await response.text()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def outputs(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, str]]:
    """What got out, by where to, of one conversation; and what the model read."""
    folder = tmp_path_factory.mktemp("kortex")
    async with AsyncExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("BRIDGE_TOKEN", plugin_bridge.TOKEN)
        patch.setenv(VARIABLE, CANARIES["environment"])
        more = await settings(folder, stack)
        stage = await stack.enter_async_context(on_stage(folder, repeat, more))
        await ingest(stage)
        asked = await stage.ask(f"@kortex checkout rotated, {CANARIES['Slack message']} is out")
        await stage.answer(asked)
        await stage.answered("and now?", thread=asked.thread)
        yield {
            "read": "\n".join(results(stage.models.requests[1])),
            "Slack": stage.sent(),
            "models": stage.prompted(),
            "log": stage.log.getvalue(),
            "rows": stage.rows(),
            "file": "".join(p.read_bytes().decode("latin-1") for p in folder.glob("kortex.db*")),
            "backends": repr(stage.plane.received),
        }


@pytest.mark.parametrize("place", CANARIES)
async def test_a_canary_appears_nowhere(outputs: dict[str, str], place: str) -> None:
    where = [sink for sink, text in outputs.items() if CANARIES[place] in text]

    assert where == []


@pytest.mark.parametrize(
    "words",
    ["pull with [redacted:", "[redacted:aws-access-key", "422", "400", "rotated [redacted:", "-2"],
)
async def test_the_model_reads_every_canary(outputs: dict[str, str], words: str) -> None:
    assert words in outputs["read"]
    assert outputs["read"].count('"untrusted":true') == len(CALLS)
