"""The routes to a backend: each one is reached by its own table, and never by another's."""

import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web
from pydantic import ValidationError

from adapters.audit.http import AuditHttp
from adapters.errors import Refused, Unreachable
from adapters.http.client import http_client
from adapters.http.egress import LocalHosts, ReachableAddresses, confined_to
from adapters.http.errors import mapped_errors
from adapters.http.tls import MAX_FILE_BYTES
from bot.app.backend_kinds import make_admin_info, make_platform
from bot.app.backend_selection import make_observed
from bot.app.build import build_base
from bot.app.http_access import backend_client, orders_client, route_of
from bot.app.live_config import role_members
from bot.settings.access import AccessSettings
from bot.settings.model import ControlPlaneSettings, Settings
from bot.settings.reading import ConfigurationError
from tests.fakes.capabilities import FakeClock, FakeDeploys, FakeHistory
from tests.fakes.proxy import proxying
from tests.fixtures_http import serving
from tests.fixtures_tls import certificate, serving_tls

KEY = "observe.logs.url"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    for host in ("localhost", "client.test"):
        certificate(folder, host)
    certificate(folder, "locked.test", passphrase=b"open it")
    (folder / "broken.pem").write_text("-----BEGIN CERTIFICATE-----\nno\n")
    (folder / "empty.pem").write_bytes(b"")
    (folder / "large.pem").write_bytes(bytes(MAX_FILE_BYTES + 1))
    return folder


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as opened:
        yield opened


@pytest.fixture
def files(request: pytest.FixtureRequest) -> None:
    """Certificates are read here on the loop; that the product does not, has a test of its own."""
    request.getfixturevalue("_nothing_blocks_the_loop").deactivate()


def client_to(url: str, stack: AsyncExitStack, **access: Any) -> httpx.AsyncClient:
    return backend_client(url, AccessSettings(**access), KEY, stack)


@pytest.mark.parametrize(
    ("access", "header", "value"),
    [
        ({"token": "t-1"}, "Authorization", "Bearer t-1"),
        ({"user": "kortex", "password": "p:w"}, "Authorization", "Basic a29ydGV4OnA6dw=="),
        ({"headers": {"authorization": "GenieKey k"}}, "Authorization", "GenieKey k"),
        ({"headers": {"X-Scope-OrgID": "eu|us"}, "token": "t"}, "X-Scope-OrgID", "eu|us"),
    ],
)
async def test_credentials_and_headers_arrive(
    access: dict[str, Any], header: str, value: str, stack: AsyncExitStack
) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text="|".join(request.headers.getall(header)))

    url = await stack.enter_async_context(serving(handler))

    assert (await client_to(url, stack, **access).get("/loki")).text == value


@pytest.mark.parametrize(
    "kind",
    [
        {"logs": {"kind": "loki"}},
        {"metrics": {"kind": "prometheus"}},
        {"traces": {"kind": "tempo"}},
        {"traces": {"kind": "jaeger"}},
    ],
    ids=["loki", "prometheus", "tempo", "jaeger"],
)
async def test_every_backend_names_its_unreadable_file(
    kind: dict[str, dict[str, str]], stack: AsyncExitStack, files: None
) -> None:
    ((family, table),) = kind.items()
    table |= {"url": "https://there", "ca_file": "/nowhere/ca.pem"}
    settings = Settings.model_validate({"observe": {family: table}})

    with pytest.raises(ConfigurationError, match=f"^observe.{family}.ca_file: /nowhere/ca.pem is"):
        make_observed(settings, FakeClock(), FakeDeploys(), FakeHistory(), stack)


async def test_the_other_clients_name_their_unreadable_file(
    stack: AsyncExitStack, files: None
) -> None:
    ca: dict[str, Any] = {"ca_file": "/nowhere"}
    settings = Settings.model_validate(
        {
            "control_plane": {"kind": "http", "info_url": "https://p/{product}", **ca},
            "platform": {"kind": "http", "url": "https://platform", **ca},
            "roles": {"sre": {"oncall": {"kind": "json", "url": "https://r", "path": "[]", **ca}}},
        }
    )
    with pytest.raises(ConfigurationError, match=r"^control_plane\.ca_file: /nowhere"):
        make_admin_info(settings.control_plane, stack)
    with pytest.raises(ConfigurationError, match=r"^platform\.ca_file: /nowhere"):
        make_platform(settings.platform, stack)
    with pytest.raises(ConfigurationError, match=r"^roles\.sre\.oncall\.ca_file: /nowhere"):
        role_members(settings)


@pytest.mark.parametrize(
    ("access", "named"),
    [
        ({"ca_file": "broken.pem"}, "ca_file: .*broken.pem holds no certificate"),
        ({"ca_file": "empty.pem"}, "ca_file: .*empty.pem holds no certificate"),
        ({"ca_file": "large.pem"}, "ca_file: .*large.pem is larger"),
        ({"ca_file": "."}, "ca_file: .* is no file"),
        ({"ca_file": "nul\0"}, "ca_file: "),
        (
            {"client_certificate": "broken.pem"},
            "client_certificate: .*broken.pem is not a certificate",
        ),
        ({"client_certificate": "locked.test.pem"}, "client_certificate: .*without a passphrase"),
        (
            {"client_certificate": "client.test.pem", "client_key": "localhost.pem"},
            "client_certificate: .*is not a certificate",
        ),
        ({"client_certificate": "client.test.pem", "client_key": "none"}, "client_key: .*no file"),
    ],
)
def test_a_bad_certificate_file_is_named(
    access: dict[str, str], named: str, certificates: Path
) -> None:
    paths = {key: f"{certificates}/{name}" for key, name in access.items()}

    with pytest.raises(ConfigurationError, match=rf"^observe\.logs\.{named}"):
        route_of(AccessSettings.model_validate(paths), KEY)


@pytest.mark.parametrize(
    "access",
    [
        {"token": "t", "user": "u"},
        {"token": "t", "headers": {"AUTHORIZATION": "x"}},
        {"user": "a:b"},
        {"password": "alone"},
        {"client_key": "alone.pem"},
        {"headers": {"Host": "elsewhere"}},
        {"headers": {"Transfer-Encoding": "chunked"}},
        {"headers": {"X-A": "1", "x-a": "2"}},
        {"headers": {"X A": "1"}},
        {"headers": {"X-A": "1\r\nX-B: 2"}},
        {"headers": {"X-A": "\udc80"}},
        {"user": "\u00fc"},
        {"proxy": "https://proxy"},
        {"proxy": "proxy:3128"},
        {"proxy": "http://[::1"},
        {"proxy": "http://proxy:3128/path"},
        {"timeout": "0s"},
    ],
)
def test_an_invalid_combination_is_refused_without_a_secret(access: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AccessSettings.model_validate(access)


async def test_a_backend_trusts_only_its_own_certificate_authority(
    stack: AsyncExitStack, files: None, certificates: Path
) -> None:
    pem = certificates / "localhost.pem"
    url = await stack.enter_async_context(serving_tls(pem))
    other = str(certificates / "client.test.pem")

    assert (await client_to(url, stack, ca_file=str(pem), token="t").get("/")).text == "Bearer t"
    with pytest.raises(Unreachable), mapped_errors("Loki"):
        await client_to(url, stack, ca_file=other).get("/")


async def test_a_client_certificate_is_sent(
    stack: AsyncExitStack, files: None, certificates: Path
) -> None:
    pem, own = certificates / "localhost.pem", certificates / "client.test.pem"
    url = await stack.enter_async_context(serving_tls(pem, clients=own))

    known = client_to(url, stack, ca_file=str(pem), client_certificate=str(own))
    assert (await known.get("/")).text == "nothing"
    with pytest.raises(Unreachable), mapped_errors("Loki"):
        await client_to(url, stack, ca_file=str(pem)).get("/")


async def test_a_proxy_tunnels_and_gets_only_its_own_credentials(
    stack: AsyncExitStack, files: None, certificates: Path
) -> None:
    pem = certificates / "localhost.pem"
    url = await stack.enter_async_context(serving_tls(pem))
    proxy = await stack.enter_async_context(proxying())
    via = f"http://us%40er:p4ss@{proxy.address}"

    client = client_to(url, stack, ca_file=str(pem), token="t-1", proxy=via)

    assert (await client.get("/")).text == "Bearer t-1"
    (head,) = proxy.heads
    assert head.startswith("CONNECT localhost:")
    assert "Proxy-Authorization: Basic dXNAZXI6cDRzcw==" in head
    assert "t-1" not in head


async def test_local_only_mode_requires_a_local_proxy_and_a_local_server(
    stack: AsyncExitStack,
) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text=request.headers.get("X-A", ""))

    url = await stack.enter_async_context(serving(handler))
    proxy = await stack.enter_async_context(proxying())
    here, away = f"http://u:p@{proxy.address}", "http://proxy.example:3128"

    with confined_to(LocalHosts()):
        found = await client_to(url, stack, headers={"X-A": "b"}, proxy=here).get("/")
        with pytest.raises(Refused, match=r"proxy\.example is refused"):
            await client_to(url, stack, proxy=away).get("/")
        with pytest.raises(Refused, match=r"loki\.example is refused"):
            await client_to("http://loki.example", stack, proxy=here).get("/")

    (head,) = proxy.heads
    assert found.text == "b"
    assert "Proxy-Authorization: Basic dTpw" in head


def test_a_name_behind_a_proxy_cannot_be_resolved_and_is_refused() -> None:
    with pytest.raises(ValueError, match="proxy"):
        http_client(proxy="http://proxy:3128", reachable=ReachableAddresses())


async def test_a_redirect_carries_nothing_to_another_host(stack: AsyncExitStack) -> None:
    reached: list[str] = []

    async def other(request: web.Request) -> web.Response:
        reached.append(request.path)
        return web.Response()

    there = await stack.enter_async_context(serving(other))
    away = there.replace("127.0.0.1", "localhost")

    async def handler(request: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect(f"{away}/stolen")

    url = await stack.enter_async_context(serving(handler))
    client = client_to(url, stack, token="t-1", headers={"X-Key": "k"})

    assert (await client.get("/")).status_code == 307
    with pytest.raises(Refused):
        await client.get("/", follow_redirects=True)
    assert reached == []


async def test_a_rota_and_a_sink_use_their_own_route(
    stack: AsyncExitStack, files: None, certificates: Path
) -> None:
    seen: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(f"{request.headers['Authorization']} {request.headers['X-Gate']}")
        return web.json_response(["a@shop.test"])

    pem = certificates / "localhost.pem"
    url = await stack.enter_async_context(serving_tls(pem, handler))
    way = {"ca_file": str(pem), "headers": {"X-Gate": "g"}}
    oncall = {"kind": "json", "url": url, "path": "[]", "user": "u", "password": "p", **way}
    audit = {"events_url": url, "events_token": "t", "events_access": way}
    settings = Settings.model_validate({"roles": {"sre": {"oncall": oncall}}, "audit": audit})

    rota = role_members(settings)["sre"].on_call
    assert rota is not None
    assert await rota.people() == {"a@shop.test"}
    sink = AuditHttp(url, route_of(settings.audit.events_route, "audit.events_access"))
    stack.push_async_callback(sink.aclose)
    await sink.send_events([])

    assert seen == ["Basic dTpw g", "Bearer t g"]


def test_a_sink_has_one_identity() -> None:
    audit = {"events_token": "t", "events_access": {"user": "u"}}

    with pytest.raises(ValidationError, match="beside the token"):
        Settings.model_validate({"audit": audit})


def test_every_secret_of_a_route_is_masked() -> None:
    logs = {
        "url": "https://kortex:in%20url-1@loki",
        "headers": {"X-Key": "in-header-2"},
        "proxy": "http://u:in-proxy-3@proxy:3128",
    }
    settings = Settings.model_validate(
        {"observe": {"logs": logs, "traces": {"user": "u", "password": "basic-4"}}}
    )

    assert {"in url-1", "in%20url-1", "in-header-2", "in-proxy-3", "basic-4"} <= settings.secrets()
    assert "in-header-2" not in repr(settings)
    assert "in-header-2" not in repr(route_of(settings.observe.logs, KEY))


async def test_files_are_read_at_start_and_off_the_loop(
    stack: AsyncExitStack, files: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_the_loop: list[bool] = []

    def reads(*_: str) -> None:
        on_the_loop.append(threading.current_thread() is threading.main_thread())

    monkeypatch.setattr("bot.app.http_access.own_trust", reads)
    ca = {"ca_file": "ca.pem"}
    oncall = {"kind": "json", "url": "https://rota", "path": "[]", **ca}
    settings = Settings.model_validate(
        {
            "database": {"url": f"sqlite+aiosqlite:///{tmp_path}/kortex.db"},
            "observe": {"logs": {"kind": "loki", "url": "https://loki", **ca}},
            "roles": {"sre": {"oncall": oncall}},
        }
    )

    base = await build_base(settings, stack)

    assert base.observed_in((), "").logs is not None
    assert on_the_loop == [False, False]


async def test_dispatches_use_the_control_planes_route_without_its_credentials(
    stack: AsyncExitStack, files: None, certificates: Path
) -> None:
    async def handler(request: web.Request) -> web.Response:
        seen = {name: request.headers.get(name, "") for name in ("Authorization", "X-Gate")}
        return web.json_response(seen)

    pem = certificates / "localhost.pem"
    plane = await stack.enter_async_context(serving_tls(pem, handler))
    other = await stack.enter_async_context(serving(handler))
    settings = ControlPlaneSettings.model_validate(
        {
            "info_url": f"{plane}/{{product}}",
            "token": "reads-1",
            "ca_file": str(pem),
            "headers": {"X-Gate": "g"},
        }
    )
    client = orders_client(settings, stack)

    own = {"Authorization": "Bearer orders-2"}
    assert (await client.post(plane, headers=own)).json() == {**own, "X-Gate": "g"}
    assert (await client.post(plane)).json() == {"Authorization": "", "X-Gate": "g"}
    assert (await client.post(other)).json() == {"Authorization": "", "X-Gate": ""}
    with confined_to(LocalHosts(["only.example"])), pytest.raises(Refused):
        await client.post("https://plane.example")
