"""`kortex check` on the systems beside the observability backends, and on Kortex' own endpoints."""

import asyncio
import errno
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from pydantic import SecretStr

from adapters.errors import AdapterError
from adapters.http.client import REACH_S, http_client, reach
from adapters.http.errors import mapped_errors
from adapters.kubernetes.kinds import kind_of
from bot.app import rules
from bot.app.backend_kinds import Cluster
from bot.app.http_access import backend_client, make_tokens
from bot.app.telemetry import make_collector
from bot.cli.check import time_budget
from bot.cli.check.installation import InstallationProbe
from bot.cli.check.time_budget import failed, probed, unset
from bot.reports.finding import Finding
from bot.settings.access import RouteSettings
from bot.settings.http import HttpSettings, own_address
from bot.settings.reading import ConfigurationError
from bot.web.listener import bind_problem
from tools.cluster_objects import ObjectQuery
from tools.core.cluster_reading import ALWAYS, PODS, STORAGE
from tools.errors import InvalidArguments, ToolError

SWEPT: Final = tuple(kind_of(plural) for plural, _ in (PODS, *ALWAYS, *STORAGE))
TOO_MUCH: Final = "this identity can do more than read; allow it only get and list"
RECENT: Final = timedelta(minutes=5)
UNKNOWN_PRODUCT: Final = "kortex-check"
OURS: Final = b'"up"'  # in the answer of /healthz
REACHED: Final = "reachable (connection only, nothing sent)"
_MOST_CHARS: Final = 200


async def check_cluster(asked: InstallationProbe) -> Sequence[Finding]:
    """It answers, and this identity can only read."""
    cluster = asked.of.cluster
    if cluster is None:
        is_unset = asked.of.settings.kubernetes.kind in ("none", "recorded")
        return [unset("kubernetes", "[kubernetes]")] if is_unset else []
    try:
        async with asyncio.timeout(time_budget.within(time_budget.PROBE_S)):
            excess = await cluster.api.excess(cluster.reader.namespaces)
            await cluster.reader.table(ObjectQuery("pods"))
            unlisted = await cluster.api.unlisted(SWEPT, cluster.reader.namespaces)
    except (ToolError, TimeoutError) as error:
        found = failed("kubernetes", error)
        return [replace(found, detail=found.detail[:_MOST_CHARS])]
    if excess:
        return [Finding("kubernetes", False, f"{TOO_MUCH}: {', '.join(excess)}")]
    words = f"answers; this identity can only read, cluster-wide and in {_spaces(cluster)}"
    if unlisted:
        words += f"; it cannot list {', '.join(unlisted)}, so their faults stay unseen"
    return [Finding("kubernetes", True, words)]


def _spaces(cluster: Cluster) -> str:
    return ", ".join(dict.fromkeys((cluster.api.namespace, *cluster.reader.namespaces)))


async def answers(part: str, kind: str, what: str, ask: Callable[[], Awaitable[object]]) -> Finding:
    """The row of a system that is asked for something small. A refused argument is an answer too."""

    async def words() -> str:
        try:
            await ask()
        except InvalidArguments as error:
            return f"{kind} answers ({error.message[:80]})"
        return f"{kind} answers (asked for {what})"

    return await probed(part, words, f"{kind}: ")


async def check_control_plane(asked: InstallationProbe) -> Sequence[Finding]:
    """The state of a product; that it knows no such product is an answer too."""
    of = asked.of
    if of.settings.control_plane.kind != "http":
        return [unset("control plane", "[control_plane]")]
    if of.observed.admin is None:
        return []  # it could not be made, and has a row that says so
    product = next(iter(of.products), UNKNOWN_PRODUCT)
    ask = partial(of.observed.admin.info, product, of.call)
    return [await answers("control plane", "http", f"the state of {product}", ask)]


async def check_platform(asked: InstallationProbe) -> Sequence[Finding]:
    """Each connection by itself: a token may have ended for one person alone."""
    of, platform = asked.of, asked.of.observed.platform
    kind = of.settings.platform.kind
    if platform is None:
        return [unset("platform", "[platform]")] if kind in ("none", "recorded") else []
    connections = rules.connection_rules(of.settings)
    if not connections:
        is_set = kind != "none"  # else the recorded one, which no setting asked for
        words = "no [platform.connections], so its tools are not offered"
        return [Finding("platform", False, words, configured=is_set)]
    return await asyncio.gather(
        *(
            answers(
                f"platform {one.id.partition(':')[2]}",
                kind,
                "its figures",
                partial(platform.stats, replace(of.call, connection_ids=frozenset({one.id}))),
            )
            for one in connections
        )
    )


async def check_feeds(asked: InstallationProbe) -> Sequence[Finding]:
    """Each of `[deploys]` is asked for the deploys of the last minutes."""
    of = asked.of
    return await asyncio.gather(
        *(
            answers(
                f"deploys {name}",
                f"{of.settings.deploys[name].kind}, {project}",
                "its last deploys",
                partial(feed.since, of.now - RECENT),
            )
            for name, feeds in of.feeds.items()
            for project, feed in feeds.items()
        )
    )


async def check_patterns(asked: InstallationProbe) -> Sequence[Finding]:
    folder, patterns = asked.of.settings.patterns.folder, asked.of.observed.patterns
    if patterns is None or not folder:
        return [unset("patterns", "[patterns]")]
    return [await answers("patterns", folder, "a runbook", partial(patterns.search, "runbook", 1))]


async def check_adapters(asked: InstallationProbe) -> Sequence[Finding]:
    """A connection to each `[adapters.NAME]`; the questions of its tool are not known here."""
    return await asyncio.gather(
        *(
            probed(f"adapter {name}", partial(reached, own, own.url, f"adapters.{name}.url"))
            for name, own in asked.of.settings.adapters.items()
        )
    )


async def reached(route: RouteSettings, url: str, key: str) -> str:
    """Words about an address that a connection reaches as a request would: by its proxy and authorities.

    Raises AdapterError, ConfigurationError.
    """
    async with AsyncExitStack() as stack:
        client = await asyncio.to_thread(backend_client, url, route, key, stack)
        await reach(client, url, urlsplit(url).hostname or "")
    return REACHED


async def check_collector(asked: InstallationProbe) -> Sequence[Finding]:
    """The collector of traces is sent an empty export."""
    otel = asked.of.settings.otel
    if not otel.endpoint:
        return [unset("otel", "[otel]")]

    async def words() -> str:
        collector = await asyncio.to_thread(make_collector, otel)
        await collector.reach()
        return "accepts traces (tried with an empty batch)"

    return [await probed("otel", words)]


async def check_issuer(asked: InstallationProbe) -> Sequence[Finding]:
    """Its keys are fetched, as for the first token."""
    oidc = asked.of.settings.oidc
    if not oidc.issuer:
        return [unset("oidc", "[oidc]")]
    try:
        usable = await make_tokens(oidc).fetch()
    except (ConfigurationError, AdapterError) as error:
        return [failed("oidc", error)]
    return [Finding("oidc", usable > 0, f"the issuer answers; {usable} usable keys")]


async def check_port(asked: InstallationProbe) -> Sequence[Finding]:
    """Kortex' own port is free, or a Kortex answers there; and which secrets open which endpoints."""
    http = asked.of.settings.http
    takes = [name for name in type(http).model_fields if _is_set(getattr(http, name))]
    page = ", the page" if asked.of.settings.page.enabled else ""
    opens = f"; tokens set: {', '.join(takes)}" if takes else ""
    words = f"for health checks, the API{page}{opens}"
    try:
        server = await asyncio.get_running_loop().create_server(
            asyncio.Protocol, http.host, http.port
        )
    except OSError as error:
        if error.errno == errno.EADDRINUSE and await _is_kortex(http):
            return [Finding("http", True, f"a Kortex answers at port {http.port}, {words}")]
        return [Finding("http", False, bind_problem(error, http.host, http.port))]
    server.close()
    free = f"port {http.port} of {http.host} is free" if http.port else "any free port"
    return [Finding("http", True, f"{free}, {words}")]


def _is_set(value: object) -> bool:
    return isinstance(value, SecretStr) and bool(value.get_secret_value())


async def _is_kortex(http: HttpSettings) -> bool:
    client = http_client(base_url=own_address(http), connect_s=REACH_S, read_s=REACH_S)
    try:
        with mapped_errors("the service"):
            response = await client.get("/healthz")
        return OURS in response.content[:200]
    except AdapterError:
        return False
    finally:
        await client.aclose()
