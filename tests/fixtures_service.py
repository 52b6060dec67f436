"""A whole bot on loopback: local workspace, model server, control plane, service, and what they saw."""

import io
import json
import logging
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    closing,
    contextmanager,
    redirect_stderr,
)
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import structlog
from blockbuster import BlockBuster

from bot import logs
from bot.app import open_redactor
from bot.service import Service, serving
from bot.settings.model import Settings
from bot.slack.pacing import Rates
from bot.workspace import interactions
from bot.workspace.app import serving as workspace_serving
from bot.workspace.delivery import Ack
from bot.workspace.messages import Message
from bot.workspace.people import User
from bot.workspace.ratelimit import RateLimits
from bot.workspace.seeds import CHECKOUT, RESPONDER, RESPONDERS
from bot.workspace.state import Setup, Workspace
from tests.fakes.control_plane_server import ControlPlaneServer, control_plane_server
from tests.fakes.model_server import ModelServer, Recorded, Round, Script

CONFIRM, REJECT, STOP = "proposal:confirm", "proposal:reject", "turn:stop"
API_KEY = "provider-key-7Hq2LxVd93KwTz"
PLANE_TOKEN = "plane-token-Zk81Qw5RtYu0Pm"
INGEST_TOKEN = "ingest-token-Bn64Xs2Ed7Cf"
QUICK = replace(Rates.unlimited(), message_gap_s=0.0)
WAIT_S = 20.0

Tree = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """A message of a person that the bot has to answer. `thread` is empty in a direct message."""

    channel: str
    ts: str
    thread: str

    def turn_in(self, workspace: Workspace) -> str:
        return f"turn:{workspace.app.team_id}:{self.channel}:{self.ts}"


@dataclass(slots=True)
class Stage:
    """Everything that runs, and what people do and see."""

    workspace: Workspace
    models: ModelServer
    plane: ControlPlaneServer
    service: Service
    settings: Settings
    folder: Path
    log: io.StringIO

    def newcomer(self, channel: str = CHECKOUT, name: str = "") -> str:
        """One more colleague: a person may ask so often a minute, and tests ask oftener."""
        roster = self.workspace.roster
        user = f"U0NEWCOM{len(roster.users):03}"
        roster.users[user] = User(
            user, name or user.lower(), name or user, self.workspace.app.team_id
        )
        roster.set_members(channel, roster.channel(channel).members | {user})
        return user

    async def ask(
        self, text: str, user: str = RESPONDER, channel: str = CHECKOUT, thread: str = ""
    ) -> Asked:
        """Say it; nothing is waited for."""
        ts = await self.workspace.say(user, channel, text, thread or None)
        return Asked(channel, ts, thread or ("" if channel.startswith("D") else ts))

    async def answered(
        self, text: str, user: str = RESPONDER, channel: str = CHECKOUT, thread: str = ""
    ) -> str:
        """Ask, wait for the finished answer, and return all that it shows."""
        return await self.answer(await self.ask(text, user, channel, thread))

    async def answer(self, asked: Asked) -> str:
        """All that the finished answer shows."""
        return await self.workspace.wait_for(lambda: self.finished(asked), WAIT_S)

    def finished(self, asked: Asked) -> str:
        """All that the answer shows once its Stop button is gone, else ""."""
        parts = self.parts(asked)
        if not parts or any(STOP in part.action_ids for part in parts):
            return ""
        return "\n".join(shown(part) for part in parts)

    def parts(self, asked: Asked) -> list[Message]:
        """The messages of an answer as they are now."""
        turn = asked.turn_in(self.workspace)
        return [
            message
            for message in self.workspace.messages(asked.channel)
            if _mark(message, "kortex_answer").get("turn") == turn
        ]

    async def live(self, asked: Asked, words: str) -> Message:
        """The answer while it is written, once it shows these words."""
        return await self.workspace.wait_for(
            lambda: next((p for p in self.parts(asked) if words in shown(p)), None), WAIT_S
        )

    def cards(self, asked: Asked) -> list[Message]:
        """The proposals in a thread."""
        thread = self.workspace.messages(asked.channel)
        return [
            m for m in thread if _mark(m, "kortex_card") and (m.thread_ts or "") == asked.thread
        ]

    async def card(self, asked: Asked, words: str = "") -> Message:
        """The newest card of the thread, once it shows these words."""
        return await self.workspace.wait_for(
            lambda: next((c for c in self.cards(asked)[::-1] if words in shown(c)), None), WAIT_S
        )

    async def press(self, user: str, message: Message, action: str, *, stale: bool = False) -> Ack:
        """Press a button of a message."""
        return await self.workspace.click(
            user, message.ts, action, channel=message.channel, stale=stale
        )

    async def forge(self, user: str, message: Message, action: str, value: str = "") -> Ack:
        """Send a press as no Slack client would let this person: anybody, any value."""
        element = message.action(action) or {}
        payload = interactions.block_actions(
            self.workspace.app,
            self.workspace.roster.users[user],
            self.workspace.roster.channel(message.channel),
            message,
            {**element, "value": value or element.get("value", "")},
            snapshot=message.as_slack(),
            is_ephemeral=False,
            chosen={},
        )
        return await self.workspace.outbox.request("interactive", payload)

    async def told(self, user: str, act: Awaitable[object]) -> str:
        """What a person is told privately upon an act."""
        before = len(self.whispers(user))
        await act
        return await self.workspace.wait_for(lambda: "".join(self.whispers(user)[before:]), WAIT_S)

    def whispers(self, user: str) -> list[str]:
        """Every private word to a person."""
        return [shown(message) for message in self.workspace.whispers(user)]

    def said(self, asked: Asked) -> list[str]:
        """Every message of the bot in the thread."""
        bot = self.workspace.app.bot_user_id
        thread = self.workspace.thread(asked.channel, asked.thread)
        return [shown(message) for message in thread if message.user == bot]

    async def note(self, asked: Asked, words: str) -> str:
        """A message of the bot in the thread, once it holds these words."""
        return await self.workspace.wait_for(
            lambda: next((t for t in self.said(asked) if words in t), ""), WAIT_S
        )

    def sent(self) -> str:
        """Every byte that was sent to Slack's Web API, tokens left out."""
        return json.dumps([[c.method, c.arguments] for c in self.workspace.calls])

    def prompted(self) -> str:
        """Every byte of every model request's body."""
        return "\n".join(request.raw.decode() for request in self.models.requests)

    @property
    def effects(self) -> int:
        """POSTs that reached the control plane."""
        return len(self.plane.of("POST"))

    def rows(self) -> str:
        """Every row of every table, the engine's included."""
        with closing(self._database()) as database:
            return "\n".join(database.iterdump())

    def query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Read or change the database behind the bot's back."""
        with closing(self._database()) as database, database:
            return database.execute(sql, values).fetchall()

    def _database(self) -> sqlite3.Connection:
        return sqlite3.connect(self.folder / "kortex.db", timeout=10)


def shown(message: Message) -> str:
    """All that a message shows: its text and every text of its blocks."""
    return "\n".join([message.text, *_texts(list(message.blocks))])


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("text"), str):
            yield value["text"]
        for member in value.values():
            yield from _texts(member)
    elif isinstance(value, list):
        for member in value:
            yield from _texts(member)


def _mark(message: Message, kind: str) -> Mapping[str, Any]:
    found = message.metadata or {}
    payload = found.get("event_payload") if found.get("event_type") == kind else None
    return payload if isinstance(payload, dict) else {}


def says(*texts: str) -> Callable[[Recorded], Round]:
    """A model that answers everything with these pieces."""
    return lambda _request: Round(text=texts)


def turn_of(request: Recorded) -> list[dict[str, Any]]:
    """The messages of a request (OpenAI's wire) from the last question on."""
    messages: list[dict[str, Any]] = request.body["messages"]
    last = max(i for i, message in enumerate(messages) if message["role"] == "user")
    return messages[last:]


def results(request: Recorded) -> list[str]:
    """The tool results of the running turn, in order."""
    return [m["content"] for m in turn_of(request) if m["role"] == "tool"]


def rounds(*script: Round) -> Callable[[Recorded], Round]:
    """A model that goes through these rounds in every turn, the last one again and again."""

    def choose(request: Recorded) -> Round:
        said = sum(message["role"] == "assistant" for message in turn_of(request))
        return script[min(said, len(script) - 1)]

    return choose


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
            "timeout": "1s",
        },
        "reversible": True,
    }
    tree: Tree = {
        "slack": {
            "bot_token": workspace.bot_token,
            "app_token": workspace.app_token,
            "signing_secret": workspace.signing_secret,
            "api_base_url": f"{workspace.origin}/api/",
        },
        "http": {"port": 0, "api_token": INGEST_TOKEN},
        "database": {"url": f"sqlite+aiosqlite:///{folder}/kortex.db"},
        "llm": {
            "default_provider": "openai",
            "providers": {
                "openai": {"api_key": API_KEY, "base_url": models.url, "model": "test-model"}
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
    return Settings.model_validate(_merged(tree, more))


def _merged(base: Tree, more: Tree) -> Tree:
    both = {
        key: _merged(base[key], value)
        for key, value in more.items()
        if isinstance(value, dict) and isinstance(base.get(key), dict)
    }
    return {**base, **more, **both}


@asynccontextmanager
async def on_stage(
    folder: Path, script: Script, more: Tree | None = None, *, setup: Setup | None = None
) -> AsyncIterator[Stage]:
    """Start all of it; `more` is merged into the settings."""
    workspace = Workspace(setup or Setup(limits=RateLimits.unlimited()))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(workspace_serving(workspace))
        models = await stack.enter_async_context(ModelServer(script))
        plane = await stack.enter_async_context(control_plane_server())
        settings = settings_of(workspace, models, plane, folder, more or {})
        log = stack.enter_context(captured_log(settings))
        service = await stack.enter_async_context(serving(settings, QUICK))
        yield Stage(workspace, models, plane, service, settings, folder, log)


Start = Callable[..., AbstractAsyncContextManager[Stage]]


@pytest.fixture
def stage(tmp_path: Path, _nothing_blocks_the_loop: BlockBuster) -> Start:
    """`on_stage` of this test; only starting and stopping may block the loop."""

    @asynccontextmanager
    async def start(
        script: Script, more: Tree | None = None, *, setup: Setup | None = None
    ) -> AsyncIterator[Stage]:
        _nothing_blocks_the_loop.deactivate()
        async with on_stage(tmp_path, script, more, setup=setup) as running:
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
    """One for the tests of a module, which names `SCRIPT` and may name `SETTINGS`.

    Those tests run on the module's loop.
    """
    more = getattr(request.module, "SETTINGS", None)
    folder = tmp_path_factory.mktemp("kortex")
    async with on_stage(folder, request.module.SCRIPT, more) as running:
        yield running


@contextmanager
def captured_log(settings: Settings) -> Iterator[io.StringIO]:
    """The log as it would be written to standard error, from DEBUG on."""
    written = io.StringIO()
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.handlers.clear()  # so that configuring closes none of the test runner's
    with redirect_stderr(written):
        logs.configure(open_redactor(settings), level="DEBUG")
    try:
        yield written
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.reset_defaults()
