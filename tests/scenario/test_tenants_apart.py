"""Two tenants with the same products and separate backends: neither sees the other's data."""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from adapters.llm.messages import ToolCall
from bot.app.backend_selection import evidence_links
from bot.app.build import Base, build_base
from bot.app.conversation import Conversation, build_conversation
from bot.app.platforms import Directory
from bot.app.stores import open_redactor
from bot.chat.stopping import Signal
from bot.cli.headless import HeadlessSurface, NamedByUser, NeverStopped
from bot.domain.channel import ChannelRule, ChosenBackends
from bot.domain.ids import TeamId
from bot.ports.platform import NamedByPlace
from bot.settings.model import Settings
from bot.settings.named_backends import ChosenBackends as ChosenNames
from tests.fakes.capabilities import call_context, nanoseconds
from tests.fakes.loki_server import LokiServer, Stored
from tests.fakes.tempo_server import TempoServer
from tests.fixtures_http import serving_app
from tools.capabilities import CallContext, Span, Trace
from tools.records import ToolOutcome

TENANTS = ("eu", "us")
PRODUCTS = ("shop", "cart")
# Whose data a channel is for; no one's where it is not known.
CHANNELS = {
    "eu-incidents": "eu",
    "us-incidents": "us",
    "eu-by-product": "eu",
    "us-by-product": "us",
    "both": "",
    "": "",
    "elsewhere": "",
}
ASKED: dict[str, dict[str, Any]] = {
    "get_logs": {"time_range": "last 30m", "limit": 2},
    "error_patterns": {"time_range": "last 30m"},
    "find_metrics": {"time_range": "last 30m"},
    "query_metrics": {"time_range": "last 30m", "query": "orders_{}_total"},
    "search_traces": {"time_range": "last 30m"},
    "get_errors": {"time_range": "last 30m"},
}


def mark(tenant: str) -> str:
    return f"of-tenant-{tenant}"


def loki(tenant: str, now: datetime) -> web.Application:
    at = nanoseconds(now)
    return LokiServer(
        [
            Stored(
                at - n * 10**10,
                f"error {mark(tenant)}: order refused",
                {"service_name": product},
                {"detected_level": "error"},
            )
            for product in PRODUCTS
            for n in range(1, 6)
        ],
        tenant,
    ).app()


def prometheus(tenant: str) -> web.Application:
    """One metric a product, which is named after the tenant, for who sends its header."""
    name = f"orders_{mark(tenant).replace('-', '_')}"

    def answered(request: web.Request, kind: str, rows: list[object]) -> web.Response:
        if request.headers.get("X-Scope-OrgID") != tenant:
            raise web.HTTPUnauthorized
        data = {"resultType": kind, "result": rows}
        return web.json_response({"status": "success", "data": data})

    async def instant(request: web.Request) -> web.Response:
        labels = {"__name__": name, "service": "shop", "kortex_label": "service"}
        return answered(request, "vector", [{"metric": labels, "value": [0, "1"]}])

    async def ranged(request: web.Request) -> web.Response:
        begun = float(str((await request.post())["start"]))
        labels = {"__name__": name, "service": "shop", "pod": mark(tenant)}
        values = [(begun + 60 * n, "1.5") for n in range(1, 4)]
        return answered(request, "matrix", [{"metric": labels, "values": values}])

    async def listed(_request: web.Request) -> web.Response:
        return web.json_response({"status": "success", "data": ["__name__", "service"]})

    async def metadata(_request: web.Request) -> web.Response:
        return web.json_response({"status": "success", "data": {}})

    app = web.Application()
    app.router.add_get("/api/v1/labels", listed)
    app.router.add_get("/api/v1/label/{name}/values", listed)
    app.router.add_get("/api/v1/metadata", metadata)
    app.router.add_post("/api/v1/query", instant)
    app.router.add_post("/api/v1/query_range", ranged)
    return app


def tempo(tenant: str, now: datetime) -> web.Application:
    begun = nanoseconds(now) // 1000 - 60_000_000
    spans = (Span("aa", "", product, mark(tenant), begun, 5_000, "error") for product in PRODUCTS)
    return TempoServer([Trace(f"{n + 1:032x}", (span,)) for n, span in enumerate(spans)]).app()


def sentry(tenant: str, now: datetime) -> web.Application:
    """A project for each product, numbered as the other tenant's are."""

    async def listed(request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {tenant}-token":
            raise web.HTTPUnauthorized
        return web.json_response([{"id": str(n), "slug": p} for n, p in enumerate(PRODUCTS, 1)])

    async def issues(request: web.Request) -> web.Response:
        project = {"id": request.query["project"], "slug": "any"}
        seen = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        issue = {"id": "1", "title": mark(tenant), "project": project, "lastSeen": seen}
        return web.json_response([issue])

    app = web.Application()
    app.router.add_get("/api/0/organizations/acme/projects/", listed)
    app.router.add_get("/api/0/organizations/acme/issues/", issues)
    return app


@dataclass
class Product:
    base: Base
    talk: Conversation
    now: datetime

    async def ask(self, tool: str, context: CallContext, **arguments: Any) -> ToolOutcome:
        call = ToolCall(f"call-{id(arguments)}", f"core__{tool}", orjson.dumps(arguments).decode())
        return await self.talk.tools.run(call, context, lambda _: None, Signal())

    def at(self, channel: str, thread: str) -> CallContext:
        return call_context(
            channel=channel, session_id=thread, turn_id=f"{channel}/{thread}", now=self.now,
            products=(), team="T1",
        )  # fmt: skip

    async def reload_first_channel(self, backends: ChosenNames) -> None:
        first, *others = self.base.settings.channels
        channels = (first.model_copy(update={"backends": backends}), *others)
        edited = self.base.settings.model_copy(update={"channels": channels})
        (await self.base.live_config.prepare(edited)).put_in_force()


def settings(urls: dict[str, dict[str, str]], folder: Path) -> Settings:
    kinds = {"logs": "loki", "metrics": "prometheus", "traces": "tempo"}
    observe: dict[str, Any] = {
        family: {
            tenant: {
                "kind": kind, "url": urls[tenant][family], "tenant": tenant,
                "products": [f"{tenant}-{product}" for product in PRODUCTS],
                "link": f"https://grafana.{tenant}.example/?q={{query}}",
            }
            for tenant in TENANTS
        }
        for family, kind in kinds.items()
    }  # fmt: skip
    observe["errors"] = {
        tenant: {
            "kind": "sentry", "url": urls[tenant]["errors"], "token": f"{tenant}-token",
            "organization": "acme", "products": [f"{tenant}-{product}" for product in PRODUCTS],
        }
        for tenant in TENANTS
    }  # fmt: skip
    by_name = [{"match": f"{each}-incidents", "backends": each} for each in TENANTS]
    by_product = [
        {"match": f"{each}-by-product", "products": [f"{each}-shop"], "reading": "all"}
        for each in TENANTS
    ]
    both = {"match": "both", "products": ["eu-shop", "us-shop"], "reading": "all"}
    return Settings.model_validate(
        {
            "database": {"url": f"sqlite+aiosqlite:///{folder}/kortex.db"},
            "observe": observe,
            "channels": [*by_name, *by_product, both],
            "policy": {"budget": {"calls": 1000, "same_calls": 100}},
        }
    )


@pytest.fixture(scope="module", autouse=True)
def rules_are_read() -> None:
    open_redactor(Settings())


@pytest.fixture
async def product(tmp_path: Path) -> AsyncIterator[Product]:
    now = datetime.now(UTC)
    async with AsyncExitStack() as stack:
        apps = {
            tenant: {
                "logs": loki(tenant, now),
                "metrics": prometheus(tenant),
                "traces": tempo(tenant, now),
                "errors": sentry(tenant, now),
            }
            for tenant in TENANTS
        }
        urls = {
            tenant: {f: await stack.enter_async_context(serving_app(app)) for f, app in by.items()}
            for tenant, by in apps.items()
        }
        base = await build_base(settings(urls, tmp_path), stack)

        async def same(user: str) -> str:
            return user

        directory = Directory(same, NamedByPlace(), NamedByUser({}))
        surface = HeadlessSurface(lambda _: None)
        talk = build_conversation(base, surface, NeverStopped(), directory)
        yield Product(base, talk, now)


async def test_a_thousand_mixed_requests_show_no_other_tenants_data(product: Product) -> None:
    threads = [f"thread-{n}" for n in range(12)]  # the same names in every channel
    crossings = list(itertools.product(CHANNELS, PRODUCTS, ASKED, threads))
    random.Random(7).shuffle(crossings)
    at_once = asyncio.Semaphore(64)

    async def cross(channel: str, of: str, tool: str, thread: str) -> tuple[str, str, ToolOutcome]:
        arguments = {k: v.format(of) if k == "query" else v for k, v in ASKED[tool].items()}
        named = {} if tool == "query_metrics" else {"product": of}
        async with at_once:
            found = await product.ask(tool, product.at(channel, thread), **named, **arguments)
        return channel, tool, found

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(cross(*each)) for each in crossings]

    seen: Counter[tuple[str, str, str]] = Counter()
    for channel, tool, found in (task.result() for task in tasks):
        text = found.content.replace("_", "-")
        seen.update((channel, tool, tenant) for tenant in TENANTS if mark(tenant) in text)
    owners = {(channel, tenant) for channel, _, tenant in seen}
    assert len(crossings) >= 1000
    assert owners == {(channel, tenant) for channel, tenant in CHANNELS.items() if tenant}
    assert {(tool, tenant) for _, tool, tenant in seen} == set(itertools.product(ASKED, TENANTS))


@pytest.mark.parametrize(
    ("channel", "why"),
    [
        ("both", "of several logs backends (eu, us); set `backends` to one of them"),
        ("", "name cannot be read"),
        ("elsewhere", "not configured: logs"),
    ],
)
async def test_an_invalid_choice_is_refused_with_a_message(
    product: Product, channel: str, why: str
) -> None:
    found = await product.ask(
        "get_logs", product.at(channel, "t"), product="shop", **ASKED["get_logs"]
    )

    assert not found.record.ok
    assert why in found.content


async def test_a_tenants_cursor_opens_no_page_from_another_channel(
    product: Product,
) -> None:
    asked = {"product": "shop", **ASKED["get_logs"]}
    first = await product.ask("get_logs", product.at("eu-incidents", "t"), **asked)
    cursor = orjson.loads(first.content)["next_cursor"]

    own = await product.ask("get_logs", product.at("eu-incidents", "t"), **asked, cursor=cursor)
    crossed = await product.ask("get_logs", product.at("us-incidents", "t"), **asked, cursor=cursor)

    assert mark("eu") in own.content
    assert mark("eu") not in crossed.content


async def test_a_channel_moved_to_another_tenant_shows_no_history(
    product: Product,
) -> None:
    asked = {"product": "shop", **ASKED["get_logs"]}
    before = await product.ask("get_logs", product.at("eu-incidents", "t"), **asked)
    await product.reload_first_channel(ChosenNames(logs="us", metrics="us", traces="us"))
    after = await product.ask("get_logs", product.at("eu-incidents", "t"), **asked)
    await product.reload_first_channel(ChosenNames(logs="gone", metrics="us", traces="us"))
    gone = await product.ask("get_logs", product.at("eu-incidents", "t"), **asked)

    assert mark("eu") in before.content
    assert mark("us") in after.content
    assert mark("eu") not in after.content
    assert "there is no [observe.logs.gone]" in gone.content


async def test_a_turn_knows_the_tables_of_its_channels_backends(product: Product) -> None:
    base = product.base
    config = base.live_config.turn_config(base.settings)
    tables = dict(config.tables_of(config.channels, "us-incidents"))

    assert tables["metrics"] == "observe.metrics.us"
    assert dict(config.tables_of(config.channels, "eu-incidents"))["logs"] == "observe.logs.eu"


async def test_an_evidence_link_opens_the_tenants_own_tools(product: Product) -> None:
    links = evidence_links(product.base.settings.observe, product.base.live_config.channels_at)
    assert links is not None

    found = {channel: links(TeamId("T1"), channel)["logs"] for channel in CHANNELS}

    hosts = {
        "eu": "https://grafana.eu.example/?q={query}",
        "us": "https://grafana.us.example/?q={query}",
    }
    assert found == {channel: hosts.get(tenant, "") for channel, tenant in CHANNELS.items()}


async def test_a_setting_shared_by_every_rule_needs_no_name(product: Product) -> None:
    agreed = [ChannelRule("*", backends=ChosenBackends("eu", "eu", "eu"), answers=True)]

    assert product.base.observed_in(agreed, "x").logs is not None
    assert (
        product.base.observed_in([*agreed, ChannelRule("*", shut=True, answers=False)], "").logs
        is product.base.observed_in(agreed, "x").logs
    )
