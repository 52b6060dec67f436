"""In local-only mode a whole turn touches the local model, Slack, and nothing else."""

import asyncio
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from bot.app.live_config import LiveConfig
from bot.app.operator_tools import Plugins
from bot.app.providers import check_edited, local_hosts
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from tests.fakes.model_server import Call, ModelServer, Round
from tests.fixtures_service import Start, stage

__all__ = ["stage"]

LOGS = Call("core__get_logs", {"product": "checkout", "range": {"last": "30m"}})
SCRIPT = [Round(calls=(LOGS,)), Round(text=("Timeouts to the database [E1].",))]


_listeners: list[set[tuple[str, int]]] = []


def _hear(event: str, args: tuple[Any, ...]) -> None:
    # CPython raises this event for every socket of any library.
    if event == "socket.connect" and isinstance(args[1], tuple):
        for heard in _listeners:
            heard.add(args[1][:2])


sys.addaudithook(_hear)


@pytest.fixture
def reached() -> Iterator[set[tuple[str, int]]]:
    """Every address this process tried to connect to over IP."""
    heard: set[tuple[str, int]] = set()
    _listeners.append(heard)
    yield heard
    _listeners.remove(heard)


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return str(parts.hostname), int(parts.port or 0)


@pytest.mark.parametrize(
    "how",
    [{"mode": "local-only"}, {"privacy": {"local_only": True}}],
    ids=["mode", "privacy"],
)
async def test_only_the_local_model_and_slack_are_contacted(
    stage: Start, reached: set[tuple[str, int]], how: dict[str, object]
) -> None:
    async with ModelServer(SCRIPT) as local:
        more = {"llm": {**how, "providers": {"ollama": {"endpoint": local.url, "model": "m"}}}}
        async with stage([Round(text=("never",))], more) as running:
            answer = await running.answered("@kortex why?")
            slack = _address(running.workspace.origin)

    assert "Timeouts to the database" in answer
    assert "ollama/m" in answer
    assert running.models.requests == []  # the default provider, which is not local
    assert reached == {_address(local.url), slack}


async def test_a_local_model_that_is_down_falls_back_to_triage_and_to_no_remote_model(
    stage: Start, reached: set[tuple[str, int]]
) -> None:
    more = {
        "llm": {
            "mode": "local-only",
            "fallback_providers": ["triage"],
            "providers": {"ollama": {"endpoint": "http://127.0.0.1:9", "model": "m"}},
        }
    }
    async with stage([Round(text=("never",))], more) as running:
        answer = await running.answered("@kortex why?")
        slack = _address(running.workspace.origin)

    assert "no model was used" in answer
    assert running.models.requests == []
    assert reached == {("127.0.0.1", 9), slack}


NETWORK = "adapters/http/network.py"
BACKENDS: dict[str, dict[str, Any]] = {
    "otel.endpoint": {"otel": {"endpoint": "https://logs.example:4318"}},
    "roles.sre.oncall.url": {
        "roles": {
            "sre": {"oncall": {"kind": "json", "url": "https://rota.example/now", "path": "[]"}}
        }
    },
    "observe.logs.url": {"observe": {"logs": {"kind": "loki", "url": "https://logs.example"}}},
    "observe.logs.eu.url": {
        "observe": {"logs": {"eu": {"kind": "loki", "url": "https://logs.example"}}}
    },
    "observe.traces.proxy": {
        "observe": {"traces": {"url": "http://127.0.0.1:1", "proxy": "http://p.example:3128"}}
    },
    "actions[1].endpoint.url": {
        "actions": [
            {
                "name": "a",
                "description": "d",
                "endpoint": {"url": "https://plane.example/{product}"},
            }
        ]
    },
}


@pytest.mark.parametrize("key", list(BACKENDS))
async def test_a_remote_backend_is_refused_at_start_unless_declared(key: str) -> None:
    settings = Settings.model_validate({**BACKENDS[key], "llm": {"mode": "local-only"}})

    with pytest.raises(ConfigurationError) as refused:
        local_hosts(settings, {})

    assert str(refused.value).startswith(f"{key}: ")
    declared = {"mode": "local-only", "privacy": {"local_hosts": ["*.example"]}}
    assert "logs.example" in local_hosts(
        Settings.model_validate({**BACKENDS[key], "llm": declared}), {}
    )


@pytest.mark.parametrize(
    ("mode", "refused"), [("local-only", True), ("normal", False)], ids=["local-only", "normal"]
)
async def test_a_reload_cannot_add_a_remote_host(mode: str, refused: bool) -> None:
    started = Settings.model_validate({"llm": {"mode": mode}})
    edited = Settings.model_validate(BACKENDS["actions[1].endpoint.url"])
    live_config = LiveConfig(started, partial(check_edited, started, {}))

    outcome = (await asyncio.gather(live_config.prepare(edited), return_exceptions=True))[0]

    assert isinstance(outcome, ConfigurationError) is refused


def test_every_connection_asks_the_egress_guard_first() -> None:
    root = Path(__file__).parents[2]
    openers = {
        path.relative_to(root).as_posix()
        for path in (root / "adapters").rglob("*.py")
        for word in (
            "AsyncClient(",
            "AsyncHTTPTransport(",
            "AsyncConnectionPool(",
            "ClientSession(",
            "open_connection(",
            "create_connection(",
            "client.connect(",
        )
        if word in path.read_text(encoding="utf-8")
    }

    # The MCP SDK wants a client of its own kind; its transport sends through one of the factory's.
    assert openers == {
        "adapters/http/client.py",
        "adapters/http/transport.py",
        "adapters/mcp/http_transport.py",
        "adapters/audit/nats.py",
    }
    texts = {own: (root / own).read_text(encoding="utf-8") for own in openers | {NETWORK}}
    assert "GuardedTransport(" in texts["adapters/http/client.py"]
    assert "CheckedNetwork(" in texts["adapters/http/transport.py"]
    for own in ("adapters/http/transport.py", "adapters/audit/nats.py"):
        assert "check_egress(" in texts[own]
    for own in (NETWORK, "adapters/audit/nats.py"):
        assert "check_resolved(" in texts[own]


@pytest.mark.parametrize(
    "url",
    ["HTTP://logs.example", "Https://logs.example", "  http://logs.example", "\thttp://logs.example",
     "http://declared.example@logs.example", "http://[::1", "http://LOGS.example."],
)  # fmt: skip
def test_no_spelling_of_a_remote_address_passes_the_start(url: str) -> None:
    settings = Settings.model_validate(
        {
            "observe": {"logs": {"kind": "loki", "url": url}},
            "llm": {"mode": "local-only", "privacy": {"local_hosts": ["declared.example"]}},
        }
    )
    with pytest.raises(ConfigurationError, match=r"^observe\.logs\.url: "):
        local_hosts(settings, {})


@pytest.mark.parametrize(("declared", "problems"), [((), 1), (("bridge.example",), 0)])
async def test_a_remote_plugin_is_not_loaded_unless_declared(
    tmp_path: Path, declared: tuple[str, ...], problems: int
) -> None:
    (tmp_path / "a.yaml").write_text(
        "name: a\ndescription: d\nallowed_sessions: ['*']\n"
        "endpoint:\n  url: HTTP://bridge.example/x\n"
    )
    llm = {"mode": "local-only", "privacy": {"local_hosts": declared}}
    settings = Settings.model_validate({"plugins": {"folder": str(tmp_path)}, "llm": llm})
    plugins = await asyncio.to_thread(Plugins, settings)
    await plugins.aclose()
    assert len(plugins.problems) == problems
    assert all("is not declared local" in note for note in plugins.notes)
