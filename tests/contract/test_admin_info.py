"""Recorded admin info and the control plane's keep the same contract."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.control_plane.admin_info import HttpAdminInfo
from adapters.http.client import http_client
from adapters.recorded.simulator.dataset import Dataset
from adapters.recorded.simulator.platform import RecordedAdminInfo
from adapters.recorded.simulator.scenario import INCIDENTS
from bot.app.backend_kinds import make_admin_info
from bot.settings.model import ControlPlaneSettings
from bot.settings.reading import ConfigurationError
from tests.fakes.capabilities import call_context
from tests.fakes.set_clock import SetClock
from tools.capabilities import AdminInfo
from tools.errors import CapabilityUnavailable, InvalidArguments, UpstreamFailed

NOW = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)
CALL = call_context()
Serve = Callable[[web.Application], Awaitable[TestServer]]


class Plane:
    """Knows checkout. Keeps what it was asked with."""

    def __init__(self, status: int = 200, body: str = "") -> None:
        self.status, self.body = status, body
        self.headers: list[Mapping[str, str]] = []
        self.paths: list[str] = []

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._info)
        return app

    async def _info(self, request: web.Request) -> web.Response:
        self.headers.append(request.headers)  # names in any case
        self.paths.append(request.raw_path)
        if self.body or self.status != 200:
            return web.Response(status=self.status, text=self.body)
        if request.raw_path != "/products/checkout/admin/info":
            return web.Response(status=404)
        return web.json_response({"product": "checkout", "version": "v2.4.0", "health": "ok"})


class AdminInfoContract:
    """Run against every implementation, which knows checkout v2.4.0."""

    async def test_a_product_shows_its_version_and_health(self, admin: AdminInfo) -> None:
        found = await admin.info("checkout", CALL)
        assert (found["product"], found["version"], found["health"]) == ("checkout", "v2.4.0", "ok")

    @pytest.mark.parametrize("product", ["chekout", "a/../b", "checkout/../secrets"])
    async def test_an_unknown_product_is_reported(self, admin: AdminInfo, product: str) -> None:
        with pytest.raises(InvalidArguments, match="product"):
            await admin.info(product, CALL)


class TestRecordedAdminInfo(AdminInfoContract):
    @pytest.fixture
    def admin(self) -> AdminInfo:
        return RecordedAdminInfo(Dataset(INCIDENTS["bad-deploy"](NOW), NOW, 11), SetClock(NOW))


@pytest.fixture
async def asking(aiohttp_server: Serve) -> AsyncIterator[Callable[[Plane], Awaitable[AdminInfo]]]:
    async with AsyncExitStack() as stack:

        async def opened(plane: Plane) -> AdminInfo:
            running = await aiohttp_server(plane.app())
            url = f"{running.make_url('/')}products/{{product}}/admin/info"
            settings = ControlPlaneSettings.model_validate(
                {"kind": "http", "info_url": url, "token": "token-of-the-plane"}
            )
            admin = make_admin_info(settings, stack)
            assert admin is not None
            return admin

        yield opened


class TestControlPlane(AdminInfoContract):
    @pytest.fixture
    async def admin(self, asking: Callable[[Plane], Awaitable[AdminInfo]]) -> AdminInfo:
        return await asking(Plane())


async def test_the_asker_is_named_and_cannot_inject_a_header(
    asking: Callable[[Plane], Awaitable[AdminInfo]],
) -> None:
    plane = Plane()
    admin = await asking(plane)
    await admin.info("checkout", call_context(actor="U1\r\nX-Admin: yes", session_id="s\u00e9"))
    (headers,) = plane.headers
    assert headers["X-Kortex-Actor"] == "U1??X-Admin: yes"
    assert (headers["X-Kortex-Team"], headers["X-Kortex-Session"]) == ("T1", "s?")
    assert headers["Authorization"] == "Bearer token-of-the-plane"
    assert "X-Admin" not in headers


@pytest.mark.parametrize(
    ("status", "body"), [(503, "try later"), (401, "no"), (200, "<html>"), (200, "[1]"), (302, "")]
)
async def test_an_answer_of_another_shape_is_a_failure(
    asking: Callable[[Plane], Awaitable[AdminInfo]], status: int, body: str
) -> None:
    admin = await asking(Plane(status, body))
    with pytest.raises(UpstreamFailed) as failure:
        await admin.info("checkout", CALL)
    assert failure.value.status == status


async def test_an_unreachable_control_plane_is_unavailable(unused_tcp_port: int) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}/{{product}}"
    async with http_client() as client:
        with pytest.raises(CapabilityUnavailable):
            await HttpAdminInfo(client, url).info("checkout", CALL)


@pytest.mark.parametrize(
    "url", ["", "ftp://x/{product}", "http://{product}.plane/info", "http://u:p@x/"]
)
async def test_an_address_with_an_unknown_placeholder_stops_the_start(url: str) -> None:
    async with AsyncExitStack() as stack:
        with pytest.raises(ConfigurationError, match="info_url"):
            make_admin_info(ControlPlaneSettings(kind="http", info_url=url), stack)
