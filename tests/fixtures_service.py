"""A whole bot on loopback: local workspace, model server, control plane and service, started."""

import io
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    redirect_stderr,
)
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from blockbuster import BlockBuster

from bot.app.start import serving
from bot.app.stores import open_redactor
from bot.app.worker import Times
from bot.demo.workspace.app import serving as workspace_serving
from bot.demo.workspace.seeds import RESPONDERS
from bot.demo.workspace.state import Setup, Workspace
from bot.settings.model import Settings
from bot.slack.delivery.pacing import Rates
from bot.slack.ingress.http_mode import PATH
from bot.telemetry import logs
from tests.fakes.control_plane_server import ControlPlaneServer, control_plane_server
from tests.fakes.model_server import ModelServer, Script
from tests.fixtures_database import place_sqlite
from tests.one_slack import OneSlack
from tests.plain_logging import logging_put_back
from tests.signed_http import signed_http
from tests.stage import Stage

API_KEY = "provider-key-7Hq2LxVd93KwTz"
PLANE_TOKEN = "plane-token-Zk81Qw5RtYu0Pm"
INGEST_TOKEN = "ingest-token-Bn64Xs2Ed7Cf"
QUICK = replace(Rates.unlimited(), message_gap_s=0.0)

Tree = dict[str, Any]


def settings_of(
    workspace: Workspace, models: ModelServer, plane: ControlPlaneServer, folder: Path, more: Tree
) -> Settings:
    """A configuration that asks the model server, over OpenAI's wire, about the recorded shop."""
    rollback: Tree = {
        "name": "rollback-deploy",
        "description": "Roll a product back to a previous version",
        "params_schema": {
            "type": "object",
            "properties": {"version": {"type": "string"}, "note": {"type": "string"}},
            "additionalProperties": False,
        },
        "endpoint": {
            "url": f"{plane.url}/products/{{product}}/rollback",
            "token": PLANE_TOKEN,
            "timeout": "5s",
        },
        "reversible": True,
        "products": ["checkout", "payments", "inj-*"],
    }
    tree: Tree = {
        "slack": {
            "bot_token": workspace.bot_token,
            "app_token": workspace.app_token,
            "signing_secret": workspace.signing_secret,
            "api_base_url": f"{workspace.origin}/api/",
            "stream": "edit",  # what shows every state; Slack's own streams have tests of their own
        },
        "http": {"port": 0, "api_token": INGEST_TOKEN},
        "database": {"url": f"sqlite+aiosqlite:///{folder}/kortex.db"},
        "llm": {
            "default_provider": "openai",
            "triage_fallback": False,  # scripts may answer without looking at anything
            "first_look": False,  # and number their own evidence from 1
            "providers": {
                "openai": {"api_key": API_KEY, "base_url": models.url, "model": "test-model"},
                "anthropic": {"api_key": API_KEY, "base_url": models.url, "model": "other-model"},
            },
        },
        "observe": {part: {"kind": "recorded"} for part in ("logs", "metrics", "traces")},
        "roles": {"responder": {"usergroups": [RESPONDERS]}},
        "admins": {"roles": ["responder"]},
        "channels": [
            {
                "match": "incident-*",
                "session": "{channel}",
                "products": ["checkout", "payments"],
                "confirm": ["responder"],
            }
        ],
        "actions": [rollback],
    }
    return Settings.model_validate(_merged(tree, _placed(more, plane.url)))


def _placed(value: Any, plane_url: str) -> Any:
    """With the control plane's address where a test wrote `PLANE`."""
    match value:
        case str():
            return value.replace("PLANE", plane_url)
        case dict():
            return {key: _placed(each, plane_url) for key, each in value.items()}
        case list() | tuple():
            return [_placed(each, plane_url) for each in value]
        case _:
            return value


def _merged(base: Tree, more: Tree) -> Tree:
    both = {
        key: _merged(base[key], value)
        for key, value in more.items()
        if isinstance(value, dict) and isinstance(base.get(key), dict)
    }
    return {**base, **more, **both}


@asynccontextmanager
async def on_stage(
    folder: Path,
    script: Script,
    more: Tree | None = None,
    *,
    setup: Setup | None = None,
    times: Times = Times(),  # noqa: B008 - frozen
    slack: OneSlack | None = None,
) -> AsyncIterator[Stage]:
    """Start all of it; `more` is merged into the settings. `slack` has several workspaces."""
    workspace = slack.home if slack else Workspace(setup)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(workspace_serving(workspace, api=slack))
        models = await stack.enter_async_context(ModelServer(script))
        plane = await stack.enter_async_context(control_plane_server())
        settings = settings_of(workspace, models, plane, folder, more or {})
        log = stack.enter_context(captured_log(settings))
        await place_sqlite(folder / "kortex.db")
        running = await stack.enter_async_context(AsyncExitStack())
        service = await running.enter_async_context(serving(settings, QUICK, times=times))
        if settings.slack.mode == "http":
            url = f"http://127.0.0.1:{service.http_port}{PATH}"
            for each in slack.workspaces if slack else (workspace,):
                await stack.enter_async_context(signed_http(each, url))
        yield Stage(workspace, models, plane, service, settings, folder, log, running.aclose)


Start = Callable[..., AbstractAsyncContextManager[Stage]]


@pytest.fixture
def stage(tmp_path: Path, _nothing_blocks_the_loop: BlockBuster) -> Start:
    """`on_stage` of this test; only starting and stopping may block the loop."""

    @asynccontextmanager
    async def start(
        script: Script,
        more: Tree | None = None,
        *,
        setup: Setup | None = None,
        times: Times = Times(),  # noqa: B008 - frozen
    ) -> AsyncIterator[Stage]:
        _nothing_blocks_the_loop.deactivate()
        async with on_stage(tmp_path, script, more, setup=setup, times=times) as running:
            _nothing_blocks_the_loop.activate()
            try:
                yield running
            finally:
                _nothing_blocks_the_loop.deactivate()

    return start


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def shared_stage(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncIterator[Stage]:
    """One for the tests of a module, which names `SCRIPT` and may name `SETTINGS` and `TIMES`.

    Those tests run on the module's loop.
    """
    more = getattr(request.module, "SETTINGS", None)
    times = getattr(request.module, "TIMES", Times())
    folder = tmp_path_factory.mktemp("kortex")
    async with on_stage(folder, request.module.SCRIPT, more, times=times) as running:
        yield running


@contextmanager
def captured_log(settings: Settings) -> Iterator[io.StringIO]:
    """The log as it would be written to standard error, from DEBUG on."""
    written = io.StringIO()
    with logging_put_back():
        with redirect_stderr(written):
            logs.configure(open_redactor(settings), level="DEBUG")
        yield written
