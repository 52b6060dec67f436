"""A server looked after: what reaches a turn, and what never does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from adapters.errors import BadAnswer
from adapters.mcp.answer import Answer
from adapters.mcp.definition import Accepted, Definition, ToolState
from adapters.mcp.supervisor import Pace, ServerSpec, ServerState, Supervisor, running
from tests.fakes.mcp_connection import FakeServer
from tools.errors import CapabilityUnavailable, ToolError, UpstreamFailed

SEARCH = Definition("search", "Find tickets.", {"type": "object", "properties": {}})
OTHER = Definition("search", "Find tickets, then act.", SEARCH.schema)
OTHERS = Definition("others", "Find others.", SEARCH.schema)
QUICK = Pace(first_s=0.0, most_s=0.0, review_s=5.0, settle_s=0.0)


class Watched:
    """A supervisor, and each change of the tools that are on."""

    def __init__(self, server: FakeServer, *more: Definition, pace: Pace = QUICK) -> None:
        accepted = {d.name: Accepted(d.sha256(), reads=True) for d in (SEARCH, *more)}
        self.changes: asyncio.Queue[list[str]] = asyncio.Queue()
        spec = ServerSpec("tickets", accepted, 30.0)
        self.supervisor = Supervisor(spec, server.open, self._changed, pace)

    async def _changed(self) -> None:
        await self.changes.put([tool.contract.id for tool in self.supervisor.tools])

    def running(self) -> AbstractAsyncContextManager[None]:
        return running([self.supervisor], 5.0)


async def test_an_accepted_tool_is_called_on_its_server() -> None:
    server = FakeServer([SEARCH])
    watched = Watched(server)
    async with watched.running():
        answer = await watched.supervisor.call("search", {"q": "x"})

    assert answer == Answer(("done",))
    assert server.calls == [("search", {"q": "x"})]
    assert server.closed == 1


async def test_a_changed_tool_goes_off_and_comes_back() -> None:
    server = FakeServer([SEARCH])
    watched = Watched(server)
    async with watched.running():
        first = await watched.changes.get()
        server.announces = [OTHER]
        server.stir()
        second = await watched.changes.get()
        (changed,) = watched.supervisor.judged
        server.announces = [SEARCH]
        server.stir()
        third = await watched.changes.get()

    assert (first, second, third) == (["mcp__tickets__search"], [], ["mcp__tickets__search"])
    assert changed.state is ToolState.CHANGED


async def test_an_added_entry_is_on_and_a_removed_one_is_off_at_once() -> None:
    server = FakeServer([SEARCH, OTHERS])
    watched = Watched(server)
    async with watched.running():
        await watched.changes.get()
        watched.supervisor.accept({"others": Accepted(OTHERS.sha256(), reads=True)})
        at_once = watched.supervisor.tools
        after = await watched.changes.get()

    assert at_once == ()
    assert after == ["mcp__tickets__others"]


async def test_an_entry_removed_from_a_dead_server_is_off_too() -> None:
    server = FakeServer([SEARCH])
    watched = Watched(server)
    async with watched.running():
        await server.attempts.acquire()
        server.refuses, server.lost = True, "it ended"
        server.stir()
        await server.attempts.acquire()
        watched.supervisor.accept({"search": Accepted(SEARCH.sha256(), reads=False)})
        tools = watched.supervisor.tools

    assert tools == ()


async def test_an_unchanged_list_changes_nothing() -> None:
    server = FakeServer([SEARCH])
    watched = Watched(server)
    async with watched.running():
        await server.reviews.acquire()
        server.stir()
        await server.reviews.acquire()

    assert watched.changes.qsize() == 1


async def test_two_tools_of_one_id_are_both_off() -> None:
    upper = Definition("Search", "Another.", SEARCH.schema)
    watched = Watched(FakeServer([SEARCH, upper]), upper)
    async with watched.running():
        states = [(tool.state, tool.reason) for tool in watched.supervisor.judged]

    assert states == [(ToolState.REFUSED, "two tools would be mcp__tickets__search")] * 2
    assert watched.supervisor.tools == ()


@pytest.mark.parametrize(
    "definition",
    [
        Definition("find", "Find.", {"properties": {"connectionId": {"type": "string"}}}),
        Definition("find", "Find.", {"oneOf": [{}, {}]}),
        Definition("find", " \u200b", SEARCH.schema),
        Definition("propose_action", "Propose.", SEARCH.schema),
        Definition("x" * 60, "Long.", SEARCH.schema),
    ],
    ids=["connection", "schema", "no description", "our proposing tool", "long name"],
)
async def test_an_unusable_tool_is_refused_even_when_accepted(definition: Definition) -> None:
    watched = Watched(FakeServer([definition]), definition)
    async with watched.running():
        found = {tool.name: tool for tool in watched.supervisor.judged}

    assert found[definition.name].state is ToolState.REFUSED
    assert found[definition.name].reason


@pytest.mark.parametrize(
    "failure",
    [UpstreamFailed("no ticket"), CapabilityUnavailable("gone")],
    ids=["upstream", "gone"],
)
async def test_a_failed_call_affects_no_other_call(failure: ToolError) -> None:
    server = FakeServer([SEARCH], hangs=asyncio.Event())
    watched = Watched(server)
    async with watched.running(), asyncio.TaskGroup() as group:
        waiting = group.create_task(watched.supervisor.call("search", {}))
        await server.reached.wait()
        hang, server.hangs, server.answer = server.hangs, None, failure
        with pytest.raises(type(failure)):
            await watched.supervisor.call("search", {})
        server.answer = Answer(("late",))
        assert hang is not None
        hang.set()

    assert waiting.result() == Answer(("late",))
    assert server.closed == 1


async def test_a_cancelled_call_returns_at_once_and_is_cancelled_at_the_server() -> None:
    server = FakeServer([SEARCH], hangs=asyncio.Event())
    watched = Watched(server)
    async with watched.running():
        call = asyncio.ensure_future(watched.supervisor.call("search", {}))
        await server.reached.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        server.hangs = None
        again = await watched.supervisor.call("search", {})

    assert again == Answer(("done",))


async def test_a_lost_server_is_reconnected_and_its_tools_stay() -> None:
    server = FakeServer([SEARCH])
    watched = Watched(server)
    async with watched.running():
        await server.attempts.acquire()
        await server.reviews.acquire()
        server.refuses, server.lost = True, "it ended with code 3"
        server.stir()
        await server.attempts.acquire()
        with pytest.raises(CapabilityUnavailable, match=r"nobody there|code 3"):
            await watched.supervisor.call("search", {})
        tools = [tool.contract.id for tool in watched.supervisor.tools]
        server.refuses, server.lost = False, ""
        await server.reviews.acquire()
        answer = await watched.supervisor.call("search", {})

    assert tools == ["mcp__tickets__search"]
    assert answer == Answer(("done",))
    assert watched.changes.qsize() == 1


async def test_running_calls_end_when_the_server_is_lost() -> None:
    server = FakeServer([SEARCH], hangs=asyncio.Event())
    watched = Watched(server)
    async with watched.running(), asyncio.TaskGroup() as group:
        call = group.create_task(_failure_of(watched.supervisor))
        await server.reached.wait()
        server.refuses, server.lost = True, "it ended"
        server.stir()

    assert "cannot be asked" in call.result()


async def _failure_of(supervisor: Supervisor) -> str:
    with pytest.raises(CapabilityUnavailable) as raised:
        await supervisor.call("search", {})
    return raised.value.message


async def test_a_bug_in_the_client_only_restarts_it() -> None:
    server = FakeServer([SEARCH], answer=ZeroDivisionError("a bug"))
    watched = Watched(server)
    async with watched.running():
        await server.attempts.acquire()
        with pytest.raises(ZeroDivisionError):
            await watched.supervisor.call("search", {})
        await server.attempts.acquire()

    assert server.closed == 2


def test_a_server_that_keeps_ending_is_restarted_with_backoff() -> None:
    pace = Pace(first_s=1.0, most_s=60.0, review_s=60.0)
    waits = [pace.next_s(0.5, 0.2)]
    waits += [pace.next_s(waits[-1], 2.0)]
    waits += [pace.next_s(40.0, 59.0), pace.next_s(40.0, 60.0)]

    assert waits == [1.0, 2.0, 60.0, 1.0]


async def test_a_server_with_an_endless_tool_list_is_down() -> None:
    server = FakeServer([SEARCH], breaks=BadAnswer("its list of tools does not end"))
    watched = Watched(server)
    async with watched.running():
        seen = watched.supervisor.state, watched.supervisor.reason

    assert seen == (ServerState.DOWN, "its list of tools does not end")


async def test_a_silent_server_delays_the_start_only_by_its_timeout() -> None:
    forever = asyncio.Event()

    @asynccontextmanager
    async def open_(wake: asyncio.Event) -> AsyncIterator[FakeServer]:
        await forever.wait()
        yield FakeServer()

    supervisor = Supervisor(ServerSpec("slow", {}, 30.0), open_, _nothing)
    async with running([supervisor], 0.01):
        state = supervisor.state

    assert state is ServerState.STARTING


async def _nothing() -> None:
    return
