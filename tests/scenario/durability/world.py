"""What replicas talk to, all in the test's process: Slack, a model, logs, a control plane, a database.

Each counts what reaches it and can be held at a point (`gates`).
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from aiohttp import web

from bot.actions.display import CLAIM_CALLS
from bot.app.worker import Times
from bot.demo.control_plane import create_control_plane
from bot.demo.workspace.app import create_app
from bot.demo.workspace.seeds import CHECKOUT, RESPONDER
from bot.demo.workspace.state import Workspace
from bot.demo.workspace.timeline import Message
from bot.store import tables
from bot.store.database import Database
from bot.store.tables import turn_steps
from bot.store.tickets import workflow_status
from tests.fakes.loki_server import LokiServer, Stored
from tests.fakes.model_server import Call, ModelServer, Recorded, Round
from tests.fixtures_database import new_database
from tests.held_connection import reading
from tests.scenario.durability import replica
from tests.scenario.durability.gates import Gates, Hold
from tests.scenario.durability.replica import TIMES, Replica

T = TypeVar("T")
CONTROL_TOKEN = "control-plane-token"
TIMEOUT_S = 40.0

CONFIG = """
[slack]
bot_token = "{bot_token}"
app_token = "{app_token}"
signing_secret = "{signing_secret}"
api_base_url = "{slack}/api/"
stream = "{stream}"
[http]
port = 0
[database]
url = "{database}"
[llm]
default_provider = "{provider}"
triage_fallback = false
first_look = false
[llm.providers.{provider}]
api_key = "model-key"
base_url = "{model}"
model = "test-model"
{api}
[observe.logs]
kind = "loki"
url = "{loki}"
[roles.responder]
usergroups = ["S0RESPOND1"]
[[channels]]
match = "incident-*"
products = ["checkout", "web", "cart"]
confirm = ["responder"]
[admins]
roles = ["responder"]
[[actions]]
name = "restart-by-two"
description = "Restart a product to a version"
params_schema = {{ type = "object", properties = {{ version = {{ type = "string" }} }} }}
endpoint = {{ method = "POST", url = "{control}/products/{{product}}/restart-by-two", token = "control-plane-token" }}
status_url = "{control}/operations"
approvals = 2
[[actions]]
name = "restart"
description = "Restart a product"
params_schema = {{ type = "object", properties = {{ version = {{ type = "string" }} }} }}
endpoint = {{ method = "POST", url = "{control}/products/{{product}}/restart", token = "control-plane-token" }}
status_url = "{control}/operations"
reversible = true
"""


RESTART = Call(
    "core__propose_action",
    {"action": "restart", "product": "checkout", "params": {}, "rationale": "it leaks"},
)


BY_TWO = Call(
    "core__propose_action",
    {
        "action": "restart-by-two",
        "product": "checkout",
        "params": {"version": "v1"},
        "rationale": "it leaks",
    },
)


def logs_of(product: str) -> Call:
    """A call whose one query the logs server sees."""
    return Call("core__get_logs", {"product": product, "time_range": "last 30m"})


@dataclass(slots=True)
class Asked:
    """A message to the bot. `thread` is its thread's root."""

    ts: str
    thread: str
    channel: str = CHECKOUT


@dataclass
class World:
    """See the module."""

    folder: Path
    database_url: str
    database: Database
    wire: str = "anthropic"
    stream: str = "edit"
    workspace: Workspace = field(default_factory=Workspace)
    gates: Gates = field(default_factory=Gates)
    scripts: dict[str, Sequence[Round]] = field(default_factory=dict)
    rounds: Counter[tuple[str, int]] = field(default_factory=Counter)  # asked, per ask and round
    order: list[tuple[str, int]] = field(default_factory=list)
    round_holds: dict[tuple[str, int], tuple[int, Hold]] = field(default_factory=dict)
    most_active: int = 0  # rounds under way at once
    addresses: dict[str, str] = field(default_factory=dict)
    loki: LokiServer = field(
        default_factory=lambda: LokiServer(
            Stored(time.time_ns(), f"{product} is slow", {"service_name": product})
            for product in ("checkout", "web", "cart")
        )
    )
    replicas: list[Replica] = field(default_factory=list)
    model: ModelServer = field(init=False)
    _sockets: dict[str, web.WebSocketResponse] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        """The replicas' configuration; their log is beside it."""
        return self.folder / "kortex.toml"

    # Replicas.

    async def start(self, times: Times = TIMES) -> Replica:
        """Start a replica and wait until Slack can reach it."""
        started = await self.launch(times)
        await self.serves(started)
        return started

    async def launch(self, times: Times = TIMES, *, cold: bool = False) -> Replica:
        """A replica that has just begun to start; a `cold` one has imported nothing."""
        launched = await replica.launch(self.config, times, cold=cold)
        self.replicas.append(launched)
        return launched

    async def serves(self, launched: Replica) -> None:
        """Until Slack can reach it, the newest."""
        await launched.serves()

        def new() -> list[web.WebSocketResponse]:
            known = self._sockets.values()
            return [c for c in self.workspace.sockets.connections if c not in known]

        await self.workspace.wait_for(lambda: bool(new()), TIMEOUT_S)
        (self._sockets[launched.executor],) = new()

    async def kill(self, victim: Replica) -> None:
        """SIGKILL; returns when Slack has noticed."""
        before = len(self.workspace.sockets.connections)
        await victim.kill()
        await self.workspace.wait_for(
            lambda: len(self.workspace.sockets.connections) < before, TIMEOUT_S
        )

    async def runner_of(self, asked: Asked) -> Replica:
        """The replica that runs that turn."""
        owner = await self.until(lambda: self._owner(asked))
        return next(r for r in self.replicas if r.executor == owner)

    async def _owner(self, asked: Asked) -> str | None:
        workflows = workflow_status(self.database.dialect)
        found: Sequence[Any] = await self.rows(
            sa.select(workflows.c.executor_id).where(
                workflows.c.workflow_uuid == self.turn_id(asked), workflows.c.status == "PENDING"
            )
        )
        return found[0][0] if found else None

    # People.

    async def ask(self, text: str, thread: str | None = None, user: str = RESPONDER) -> Asked:
        """Ask the bot something that has a script."""
        ts = await self.workspace.say(user, CHECKOUT, f"@kortex {text}", thread)
        return Asked(ts, thread or ts)

    def turn_id(self, asked: Asked) -> str:
        """The turn of that message."""
        return f"turn:{self.workspace.app.team_id}:{asked.channel}:{asked.ts}"

    # What can be seen.

    def from_bot(self, asked: Asked, event_type: str = "kortex_answer") -> list[Message]:
        """The bot's messages of that kind in the thread."""
        thread = self.workspace.thread(asked.channel, asked.thread)
        return [m for m in thread if (m.metadata or {}).get("event_type") == event_type]

    def answers(self, asked: Asked) -> list[Message]:
        """The messages of that turn's answer."""
        turn = self.turn_id(asked)
        return [m for m in self.from_bot(asked) if turn in str(m.metadata)]

    def said(self, asked: Asked) -> list[Message]:
        bot = self.workspace.app.bot_user_id
        return [m for m in self.workspace.thread(asked.channel, asked.thread) if m.user == bot]

    def grows(self, asked: Asked) -> list[str]:
        told = [message.ts for message in self.said(asked)]
        return [ts for ts in told if self.workspace.streams.is_open(asked.channel, ts)]

    async def shows(self, asked: Asked, text: str) -> None:
        """Until an answer of the thread has that text. Raises TimeoutError."""
        await self.workspace.wait_for(
            lambda: any(text in m.text for m in self.from_bot(asked)), TIMEOUT_S
        )

    async def settled(self) -> None:
        """Until no workflow is unfinished, no ticket is left, every card shows its row's state.

        A card that a dead process was painting is painted once its claim has lapsed.
        Raises TimeoutError.
        """
        await self.until(self._is_settled, CLAIM_CALLS * TIMES.card_call_s + TIMEOUT_S)

    async def _is_settled(self) -> bool:
        workflows = workflow_status(self.database.dialect)
        unfinished = sa.select(workflows.c.workflow_uuid).where(
            workflows.c.status.in_(("PENDING", "ENQUEUED", "DELAYED"))
        )
        cards = tables.proposals.c
        untrue = sa.select(cards.id).where(cards.card_shown < cards.card_wanted)
        left = (unfinished, sa.select(tables.tickets.c.id), untrue)
        return not any([await self.rows(each) for each in left])

    async def propose(self, ask: str, call: Call = RESTART) -> Asked:
        """Have the model propose a restart; the turn is over and its card there when this returns."""
        self.scripts.setdefault(ask, [Round(calls=(call,)), Round(text=("Proposed.",))])
        asked = await self.ask(ask)
        await self.shows(asked, "Proposed.")
        await self.settled()  # what the turn still writes is not taken for what comes next
        return asked

    def card(self, asked: Asked) -> Message:
        """The one card in the thread."""
        (card,) = self.from_bot(asked, "kortex_card")
        return card

    async def decided(self, asked: Asked, *states: str) -> sa.Row[Any]:
        """The thread's proposal once it is in one of those states.

        Raises TimeoutError that names the state it stayed in.
        """
        mine = tables.proposals.c.thread_ts == asked.thread
        seen = ""

        async def look() -> sa.Row[Any] | None:
            nonlocal seen
            (row,) = await self.rows(sa.select(tables.proposals).where(mine))
            seen = row.state
            return row if row.state in states else None

        try:
            return await self.until(look)
        except TimeoutError as error:
            raise TimeoutError(f"the proposal stayed {seen}, and was to be {states}") from error

    async def turn_state(self, asked: Asked) -> str:
        """As the row says; empty before there is one."""
        found = await self.rows(
            sa.select(tables.turns.c.state).where(tables.turns.c.id == self.turn_id(asked))
        )
        return found[0][0] if found else ""

    async def whole_answer(self, asked: Asked) -> str:
        """What is behind *Evidence*; empty where the thread has all of it."""
        found = await self.rows(
            sa.select(tables.turns.c.answer).where(tables.turns.c.id == self.turn_id(asked))
        )
        return str(found[0][0]) if found else ""

    async def audit(self) -> Counter[str]:
        """How many rows of each kind."""
        rows = await self.rows(sa.select(tables.audit.c.kind))
        return Counter(row[0] for row in rows)

    async def history(self, asked: Asked) -> int:
        """How many messages that turn has left to later turns."""
        mine = tables.messages.c.turn_id == self.turn_id(asked)
        return len(await self.rows(sa.select(tables.messages).where(mine)))

    async def finished_steps(self, asked: Asked) -> list[str]:
        """The names of that turn's steps that are on record."""
        found = await self.rows(
            sa.select(turn_steps.c.name)
            .where(turn_steps.c.turn_id == self.turn_id(asked))
            .order_by(turn_steps.c.n)
        )
        return [row[0] for row in found]

    async def is_recorded(self, asked: Asked, step: str) -> None:
        """Return when it is: what was read waits for the round after it, but not for long."""

        async def look() -> bool:
            return step in await self.finished_steps(asked)

        await self.until(look)

    async def rows(self, statement: sa.Select[Any]) -> Sequence[Any]:
        """What a query finds."""
        async with reading(self.database) as connection:
            found: Sequence[Any] = (await connection.execute(statement)).all()
            return found

    async def until(
        self, look: Callable[[], Awaitable[T | None]], timeout_s: float = TIMEOUT_S
    ) -> T:
        """The first truthy answer. Raises TimeoutError."""
        async with asyncio.timeout(timeout_s):
            while not (found := await look()):  # noqa: ASYNC110 - another process writes the rows
                await asyncio.sleep(0.02)
            return found

    @contextmanager
    def only(self, chosen: Replica) -> Iterator[None]:
        """Slack delivers to that replica alone."""
        connections = self.workspace.sockets.connections
        others = [c for c in connections if c is not self._sockets[chosen.executor]]
        for each in others:
            connections.remove(each)
        try:
            yield
        finally:
            connections.extend(others)

    # The model.

    def hold_round(self, ask: str, number: int, *, at: int) -> Hold:
        """Hold that round of a script, the next time it is asked, before its wire's event `at`."""
        hold = Hold()
        self.round_holds[ask, number] = (at, hold)
        return hold

    def open(self) -> None:
        self.gates.open()
        for _, hold in self.round_holds.values():
            hold.release()
        self.round_holds.clear()

    def take(self, request: Recorded) -> Round:
        """The round of the script that fits the request: its ask, and how many rounds are behind."""
        ask, behind = self._place(request)
        self.rounds[ask, behind + 1] += 1
        self.order.append((ask, behind + 1))
        at, hold = self.round_holds.get((ask, behind + 1), (0, None))
        chosen = self.scripts[ask][behind]
        if hold is None or hold.reached.is_set():
            return chosen
        hold.reached.set()
        return replace(chosen, hold=hold.released, hold_at=at)

    def _place(self, request: Recorded) -> tuple[str, int]:
        if self.wire != "anthropic":  # any wire's history holds what was said, so every round says
            raw = request.raw.decode()
            ask = next(name for name in self.scripts if name in raw)
            return ask, sum("".join(each.text) in raw for each in self.scripts[ask])
        behind = 0
        for message in reversed(request.body["messages"]):
            text = _text(message)
            if message["role"] == "user" and text:
                break
            behind += message["role"] == "assistant"
        asked = text.split("\n\nNow\n", 1)[0]  # its other fields may name other questions
        return next(name for name in self.scripts if name in asked), behind


def _text(message: Mapping[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content if block["type"] == "text")


class _Model(ModelServer):
    """Knows how many rounds are under way."""

    def __init__(self, world: World) -> None:
        super().__init__(world.take)
        self._world = world
        self._under_way = 0

    async def _streamed(
        self, request: web.Request, recorded: Recorded, chosen: Round
    ) -> web.StreamResponse:
        self._under_way += 1
        self._world.most_active = max(self._world.most_active, self._under_way)
        try:
            return await super()._streamed(request, recorded, chosen)
        finally:
            self._under_way -= 1


@asynccontextmanager
async def world_on(
    kind: str,
    folder: Path,
    wire: str = "anthropic",
    stream: str = "edit",
    *,
    migrated: bool = True,
) -> AsyncIterator[World]:
    """A world on a fresh database of that kind, its model on that wire; its replicas end with it."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(new_database(kind, folder, migrated=migrated))
        database = await Database.open(url)
        stack.push_async_callback(database.close)
        world = World(folder, url, database, wire, stream)
        await _serve(world, stack)
        stack.push_async_callback(_end, world)
        yield world


async def _serve(world: World, stack: AsyncExitStack) -> None:
    slack = create_app(world.workspace)
    loki = world.loki.app()
    control = create_control_plane(CONTROL_TOKEN)
    for name, app in (("slack", slack), ("loki", loki), ("control", control)):
        app.middlewares.append(world.gates.middleware(name))
        world.addresses[name] = await _listen(app, stack)
    world.workspace.origin = world.addresses["slack"]
    world.model = await stack.enter_async_context(_Model(world))
    provider = world.wire.removesuffix("-responses")
    values = {
        **world.addresses,
        "provider": provider,
        "stream": world.stream,
        "api": "" if provider == world.wire else 'api = "responses"',
        "model": world.model.url,
        "database": world.database_url,
        "bot_token": world.workspace.bot_token,
        "app_token": world.workspace.app_token,
        "signing_secret": world.workspace.signing_secret,
    }
    await asyncio.to_thread(world.config.write_text, CONFIG.format(**values))


async def _listen(app: web.Application, stack: AsyncExitStack) -> str:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return f"http://127.0.0.1:{runner.addresses[0][1]}"


async def _end(world: World) -> None:
    world.open()
    for each in world.replicas:
        await each.kill()
