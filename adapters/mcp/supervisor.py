"""Supervise one server: connect, judge its tools, call them, reconnect after a failure.

A single task owns each connection from start to end. A server can cause no more than a failed call
and a log line.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Protocol

import structlog
from pydantic import JsonValue

from adapters.errors import AdapterError
from adapters.mcp.answer import Answer
from adapters.mcp.definition import Accepted, Definition, Judged, ToolState, judged, tool_id
from adapters.mcp.tool import McpTool, NotATool
from tools.errors import CapabilityUnavailable, ToolError

MAX_CALLS: Final = 8  # at once, per server; more wait, within their own timeout
CLOSE_S: Final = 6.0  # for a server to end by itself when Kortex ends

_log = structlog.get_logger(__name__)


class Connection(Protocol):
    """An open connection. `lost` is why it is over, "" while it is not known to be."""

    @property
    def title(self) -> str:
        """What the server calls itself."""
        ...

    @property
    def lost(self) -> str: ...

    async def definitions(self) -> Sequence[Definition]:
        """Raises AdapterError."""
        ...

    async def call(self, tool: str, arguments: Mapping[str, JsonValue]) -> Answer:
        """Raises ToolError."""
        ...

    async def follow(self) -> None:
        """Sets the wake at every change, where the server has to be asked for that."""
        ...


# Opens a connection that sets the event when its tools changed or it broke. Raises AdapterError.
Open = Callable[[asyncio.Event], AbstractAsyncContextManager[Connection]]


@dataclass(frozen=True, slots=True)
class Pace:
    first_s: float = 1.0
    most_s: float = 60.0
    review_s: float = 60.0
    settle_s: float = 1.0  # a server that says "changed" all the time is asked this often at most

    def next_s(self, waited_s: float, lasted_s: float) -> float:
        """How long to wait after a connection that lasted so long: one that held was a good one."""
        return self.first_s if lasted_s >= self.review_s else min(waited_s * 2, self.most_s)


class ServerState(StrEnum):
    STARTING = "starting"
    CONNECTED = "connected"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """What the operator says of a server. `timeout_s` is a call's default."""

    name: str
    accepted: Mapping[str, Accepted]
    timeout_s: float


class Supervisor:
    """Supervises one server. `on_change` runs when the set of enabled tools changes."""

    def __init__(
        self,
        spec: ServerSpec,
        open_: Open,
        on_change: Callable[[], Awaitable[None]],
        pace: Pace | None = None,
    ) -> None:
        self.spec = spec
        self.state = ServerState.STARTING
        self.reason = ""
        self.judged: tuple[Judged, ...] = ()
        self.tools: tuple[McpTool, ...] = ()
        self.first_try = asyncio.Event()
        self._open = open_
        self._on_change = on_change
        self._pace = pace or Pace()
        self._made: dict[str, McpTool | NotATool] = {}
        self._connection: Connection | None = None
        self._calls: asyncio.TaskGroup | None = None
        self._free = asyncio.Semaphore(MAX_CALLS)
        self._under_way: set[asyncio.Task[Answer | ToolError]] = set()
        self._wake = asyncio.Event()
        self._stopped = asyncio.Event()

    async def call(self, tool: str, arguments: dict[str, JsonValue]) -> Answer:
        """Call a tool.

        Raises ToolError. A cancelled call returns at once; the server hears of it later.
        """
        connection, calls = self._connection, self._calls
        if connection is None or calls is None:
            raise self._unavailable()
        task = calls.create_task(self._answer(connection, tool, arguments))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
        if task.cancelled():
            raise self._unavailable()
        answer = task.result()
        if isinstance(answer, ToolError):
            raise answer
        return answer

    async def _answer(
        self, connection: Connection, tool: str, arguments: dict[str, JsonValue]
    ) -> Answer | ToolError:
        """A failure is returned: raised, it would end the calls beside it."""
        async with self._free:
            try:
                return await connection.call(tool, arguments)
            except ToolError as error:
                return error

    def _unavailable(self) -> CapabilityUnavailable:
        down = self.state is ServerState.DOWN
        why = self.reason if down else "it is not connected yet, or just broke off"
        return CapabilityUnavailable(f"the MCP server {self.spec.name} cannot be asked: {why}")

    async def run(self) -> None:
        """Until `close`. Ends in nothing but a cancellation."""
        loop = asyncio.get_running_loop()
        wait_s = self._pace.first_s / 2
        while not self._stopped.is_set():
            self._wake = asyncio.Event()
            started_s = loop.time()
            try:
                async with self._open(self._wake) as connection:
                    await self._serve(connection)
                if not self._stopped.is_set():
                    self._became(ServerState.DOWN, connection.lost or "closed")
            except Exception as error:  # noqa: BLE001 - whatever a server or the SDK does ends here
                self._became(ServerState.DOWN, _words(error))
            self.first_try.set()
            wait_s = self._pace.next_s(wait_s, loop.time() - started_s)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s * random.uniform(0.8, 1.2)):  # noqa: S311 - spreads
                    await self._stopped.wait()

    def accept(self, accepted: Mapping[str, Accepted]) -> None:
        """Use other entries from now on.

        A tool that lost its entry is off at once, even on a dead server. A new entry is on after
        the next look at the server's list.
        """
        self.spec = replace(self.spec, accepted=accepted)
        self.tools = tuple(tool for tool in self.tools if _is_accepted(tool.definition, accepted))
        self._wake.set()

    def close(self) -> None:
        self._stopped.set()
        self._wake.set()

    async def _serve(self, connection: Connection) -> None:
        async with asyncio.TaskGroup() as calls:
            await self._review(connection)
            self._connection, self._calls = connection, calls
            self._became(ServerState.CONNECTED, connection.title)
            self.first_try.set()
            following = calls.create_task(connection.follow())
            try:
                await self._watch(connection)
            finally:
                self._connection = self._calls = None
                for task in (following, *self._under_way):
                    task.cancel()

    async def _watch(self, connection: Connection) -> None:
        while True:
            try:
                async with asyncio.timeout(self._pace.review_s):
                    await self._wake.wait()
            except TimeoutError:
                if self._under_way:  # a server may answer one thing after the other
                    continue
            self._wake.clear()
            if self._stopped.is_set() or connection.lost:
                return
            await asyncio.sleep(self._pace.settle_s)
            await self._review(connection)

    async def _review(self, connection: Connection) -> None:
        found = judged(await connection.definitions(), self.spec.accepted)
        ids = [tool_id(self.spec.name, each.name) for each in found if each.state is ToolState.ON]
        before = {each.name: each.state for each in self.judged}
        self.judged = tuple([await self._tried(each, ids) for each in found])
        self._log_lost(before)
        made = [self._made[each] for each in self._digests_on()]
        # The entries may have changed in the meantime.
        tools = tuple(
            tool
            for tool in made
            if isinstance(tool, McpTool) and _is_accepted(tool.definition, self.spec.accepted)
        )
        if tools != self.tools:
            self.tools = tools
            await self._on_change()

    def _digests_on(self) -> list[str]:
        return [
            each.definition.sha256()
            for each in self.judged
            if each.state is ToolState.ON and each.definition is not None
        ]

    def _log_lost(self, before: Mapping[str, ToolState]) -> None:
        for each in self.judged:
            wanted = each.accepted is not None and each.state is not ToolState.ON
            if wanted and before.get(each.name) is not each.state:
                name, state = each.name[:80], each.state.value
                _log.warning(
                    "mcp_tool_off", server=self.spec.name, tool=name, state=state,
                    reason=each.reason, see="kortex check",
                )  # fmt: skip

    async def _tried(self, verdict: Judged, ids: Sequence[str]) -> Judged:
        """An enabled tool must convert. Off the loop: a large schema takes time."""
        definition = verdict.definition
        if verdict.state is not ToolState.ON or definition is None:
            return verdict
        if ids.count(own := tool_id(self.spec.name, definition.name)) > 1:
            return replace(verdict, state=ToolState.REFUSED, reason=f"two tools would be {own}")
        digest = definition.sha256()
        if digest not in self._made:
            self._made[digest] = await asyncio.to_thread(self._make, definition)
        made = self._made[digest]
        if isinstance(made, NotATool):
            return replace(verdict, state=ToolState.REFUSED, reason=str(made))
        return verdict

    def _make(self, definition: Definition) -> McpTool | NotATool:
        try:
            return McpTool(self.spec.name, definition, self, self.spec.timeout_s)
        except NotATool as error:
            return error

    def _became(self, state: ServerState, reason: str) -> None:
        if (self.state, self.reason) == (state, reason):
            return
        self.state, self.reason = state, reason
        log = _log.info if state is ServerState.CONNECTED else _log.warning
        log("mcp_server", server=self.spec.name, state=state.value, reason=reason)


def _is_accepted(definition: Definition, accepted: Mapping[str, Accepted]) -> bool:
    own = {name: entry for name, entry in accepted.items() if name == definition.name}
    return judged([definition], own)[0].state is ToolState.ON


def first_of(error: Exception) -> Exception:
    """The first cause, out of the task groups it passed through."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _words(error: Exception) -> str:
    """Our own errors say what happened; of another only its name is safe to show."""
    error = first_of(error)
    return str(error) if isinstance(error, AdapterError) else type(error).__name__


@asynccontextmanager
async def running(supervisors: Sequence[Supervisor], patience_s: float) -> AsyncIterator[None]:
    """Look after them; the body begins when each was tried once, after `patience_s` at the latest."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each.run()) for each in supervisors]
        try:
            await _first_tries(supervisors, patience_s)
            yield
        finally:
            for each in supervisors:
                each.close()
            busy = [
                task
                for task, each in zip(tasks, supervisors, strict=True)
                if each.state is ServerState.CONNECTED
            ]
            if busy:
                await asyncio.wait(busy, timeout=CLOSE_S)
            for task in tasks:
                task.cancel()


async def _first_tries(supervisors: Sequence[Supervisor], patience_s: float) -> None:
    tries = asyncio.gather(*(each.first_try.wait() for each in supervisors))
    try:
        async with asyncio.timeout(patience_s):
            await tries
    except TimeoutError:
        return
