"""The recorded platform and one over HTTP keep the same contract, each asker with their own token."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.recorded.simulator.dataset import Dataset
from adapters.recorded.simulator.platform import RecordedPlatform
from adapters.recorded.simulator.scenario import INCIDENTS
from bot.app.backend_kinds import make_platform
from bot.domain.roles import ConnectionRule, connections_of
from bot.settings.model import PlatformSettings
from tests.fakes.capabilities import call_context
from tests.fakes.platform_server import TOKENS, PlatformServer
from tests.fakes.set_clock import SetClock
from tools.capabilities import Platform
from tools.errors import CapabilityUnavailable, InvalidArguments, UpstreamFailed

NOW = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)
ALICE, EVERYBODY = TOKENS
CALL = call_context(connection_ids=frozenset({"platform:alice"}))
Serve = Callable[[web.Application], Awaitable[TestServer]]
Open = Callable[[PlatformServer], Awaitable[Platform]]


class PlatformContract:
    """Run against every implementation: checkout runs in production on the Postgres orders-db."""

    async def test_applications_are_listed(self, platform: Platform) -> None:
        found = {one.name: one for one in await platform.applications(CALL)}
        assert {"checkout", "cart"} <= found.keys()
        assert (found["checkout"].environment, found["checkout"].status) == (
            "production",
            "running",
        )
        assert found["checkout"].resource_count == 1

    async def test_an_application_shows_its_resources_without_secrets(
        self, platform: Platform
    ) -> None:
        found = await platform.application("checkout", CALL)
        assert [(one.name, one.type) for one in found.resources] == [("orders-db", "postgres")]
        assert found.resources[0].properties["version"] == "15.6"
        assert "not-for-you" not in repr(found)
        assert "postgres://" not in repr(found)

    async def test_workflows_are_listed_newest_first_and_filtered(self, platform: Platform) -> None:
        times = [one.started_at for one in await platform.workflows("", "", CALL)]
        assert times == sorted(times, reverse=True)
        assert len(times) > 1
        (done,) = await platform.workflows("checkout", "completed", CALL)
        assert (done.application, done.status) == ("checkout", "completed")
        assert list(await platform.workflows("checkout", "failed", CALL)) == []

    async def test_a_workflow_is_shown_step_by_step(self, platform: Platform) -> None:
        (done,) = await platform.workflows("checkout", "", CALL)
        found = await platform.workflow(done.id, CALL)
        assert found.id == done.id
        assert found.steps[0].name == "validate"

    async def test_resources_are_filtered_by_type_and_application(self, platform: Platform) -> None:
        assert [one.name for one in await platform.resources("", "redis", CALL)] == [
            "cart-sessions"
        ]
        assert [one.name for one in await platform.resources("checkout", "", CALL)] == ["orders-db"]
        assert list(await platform.resources("checkout", "redis", CALL)) == []

    async def test_the_platforms_statistics_are_shown(self, platform: Platform) -> None:
        found = await platform.stats(CALL)
        assert found.applications == len(await platform.applications(CALL))
        assert found.resources == len(await platform.resources("", "", CALL))
        assert sum(found.resources_by_type.values()) == found.resources

    @pytest.mark.parametrize("name", ["chekout", "../stats", "a/b", "%2e%2e", "..", "."])
    async def test_an_unknown_name_is_reported(self, platform: Platform, name: str) -> None:
        with pytest.raises(InvalidArguments):
            await platform.application(name, CALL)
        with pytest.raises(InvalidArguments):
            await platform.workflow(name, CALL)


class TestRecordedPlatform(PlatformContract):
    @pytest.fixture
    def platform(self) -> Platform:
        return RecordedPlatform(Dataset(INCIDENTS["bad-deploy"](NOW), NOW, 11), SetClock(NOW))


@pytest.fixture
async def opened(aiohttp_server: Serve) -> AsyncIterator[Open]:
    async with AsyncExitStack() as stack:

        async def open_platform(server: PlatformServer) -> Platform:
            running = await aiohttp_server(server.app())
            connections = {
                "alice": {"users": ["U1"], "token": ALICE},
                "everybody": {"users": ["*"], "token": EVERYBODY},
                "bob": {"users": ["U2"]},
            }
            settings = {
                "kind": "http",
                "url": str(running.make_url("/")),
                "connections": connections,
            }
            platform = make_platform(PlatformSettings.model_validate(settings), stack)
            assert platform is not None
            return platform

        yield open_platform


class TestHttpPlatform(PlatformContract):
    @pytest.fixture(params=["lists by name", "lists in an object"])
    async def platform(self, request: pytest.FixtureRequest, opened: Open) -> Platform:
        return await opened(PlatformServer(keyed=request.param == "lists by name"))


async def test_each_asker_uses_their_own_token_and_is_named(opened: Open) -> None:
    server = PlatformServer()
    platform = await opened(server)
    await platform.stats(CALL)
    everybody = frozenset({"platform:everybody"})
    await platform.stats(call_context(actor="U9\r\nX-Admin: yes", connection_ids=everybody))
    first, second = server.headers
    assert first["Authorization"] == f"Bearer {ALICE}"
    assert (first["X-Kortex-Actor"], first["X-Kortex-Team"]) == ("U1", "T1")
    assert second["Authorization"] == f"Bearer {EVERYBODY}"
    assert second["X-Kortex-Actor"] == "U9??X-Admin: yes"
    assert "X-Admin" not in second


@pytest.mark.parametrize(
    "connections",
    [(), ("platform:bob",), ("platform:nobody",), ("other:alice",), ("platform:alice", "platform:bob")],
)  # fmt: skip
async def test_an_asker_without_exactly_one_connection_requests_nothing(
    opened: Open, connections: tuple[str, ...]
) -> None:
    server = PlatformServer()
    platform = await opened(server)
    with pytest.raises(CapabilityUnavailable, match="connection"):
        await platform.stats(call_context(connection_ids=frozenset(connections)))
    assert server.paths == []


@pytest.mark.parametrize(
    ("status", "body"),
    [(503, "try later"), (401, "invalid token"), (302, ""), (200, "<html>"), (200, '"x"'),
     (200, '{"applications": 3}'), (200, '{"applications": [3]}')],
)  # fmt: skip
async def test_an_invalid_answer_is_a_failure(opened: Open, status: int, body: str) -> None:
    platform = await opened(PlatformServer((status, body)))
    with pytest.raises(UpstreamFailed):
        await platform.applications(CALL)


async def test_an_oversized_answer_is_not_read(opened: Open) -> None:
    body = orjson.dumps([{"name": "x" * 1000}] * 5000).decode()
    platform = await opened(PlatformServer((200, body)))
    with pytest.raises(UpstreamFailed, match="more than"):
        await platform.applications(CALL)


async def test_an_unreachable_platform_is_unavailable(unused_tcp_port: int) -> None:
    settings = {
        "kind": "http",
        "url": f"http://127.0.0.1:{unused_tcp_port}",
        "connections": {"alice": {"users": ["U1"], "token": ALICE}},
    }
    async with AsyncExitStack() as stack:
        platform = make_platform(PlatformSettings.model_validate(settings), stack)
        assert platform is not None
        with pytest.raises(CapabilityUnavailable):
            await platform.stats(CALL)


@pytest.mark.parametrize(
    ("user", "expected"),
    [("U1", {"platform:a", "mesh:m"}), ("U2", {"platform:all", "mesh:m"}), ("*", {"platform:all"}),
     ("", {"platform:all"})],
)  # fmt: skip
def test_a_personal_connection_comes_before_a_shared_one(user: str, expected: set[str]) -> None:
    rules = [
        ConnectionRule("platform:all", ("*",)),
        ConnectionRule("platform:a", ("U1",)),
        ConnectionRule("platform:b", ("U1",)),
        ConnectionRule("mesh:m", ("U1", "U2")),
    ]
    assert connections_of(rules, user) == expected
