"""The parts of a configuration that `kortex check` asks: made, and not yet asked."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from adapters.deploys.feed import DeployFeed
from adapters.http.egress import LocalHosts, confined_to
from adapters.llm.port import Provider
from bot.app.backend_kinds import Cluster, bound, make_feeds, open_cluster
from bot.app.backend_selection import Observed, ObservedIn, SystemClock, make_observed
from bot.app.operator_tools import Plugins, open_plugins
from bot.app.providers import asked_in_order, local_hosts, make_providers
from bot.domain.channel import UNKNOWN, ChannelRule, ChosenBackends
from bot.reports.finding import Finding
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.slack.ingress.payloads import SlackIdentity
from tools.capabilities import CallContext, Deploy, IncidentQuery, Interval, PastIncident

Made = TypeVar("Made")
NOTHING = Observed()


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """All that needs no network to make. `problems` are the parts that could not be made."""

    settings: Settings
    now: datetime
    providers: Mapping[str, Provider]
    in_order: Sequence[Provider]
    cluster: Cluster | None
    plugins: Plugins
    feeds: Mapping[str, Mapping[str, DeployFeed]]
    observed_in: ObservedIn
    problems: Sequence[Finding]

    @property
    def observed(self) -> Observed:
        """What a channel looks at that chooses nothing."""
        return self.observed_in((), UNKNOWN)

    def observed_as(self, name: str) -> Observed:
        """What a channel looks at that chooses the backends of that name."""
        chosen = ChannelRule("*", backends=ChosenBackends(name, name, name, name))
        return self.observed_in((chosen,), "any")

    @property
    def products(self) -> tuple[str, ...]:
        named = [one for channel in self.settings.channels for one in channel.products]
        return tuple(one for one in dict.fromkeys(named) if one != "*")

    @property
    def call(self) -> CallContext:
        """The context of a call by the operator, outside any channel."""
        return CallContext(
            actor="operator", team="", channel="", session_id="check", session_name="check",
            turn_id="check", tool_call_id="check", purpose="check", now=self.now,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class InstallationProbe:
    """An installation and the running questions to its Slack and its database.

    Other parts wait for those two.
    """

    of: Installation
    _slack: asyncio.Task[tuple[Sequence[Finding], SlackIdentity | None]]
    _database: asyncio.Task[Sequence[Finding]]

    async def slack(self) -> tuple[Sequence[Finding], SlackIdentity | None]:
        """What it said, and who the bot is where it said so."""
        return await asyncio.shield(
            self._slack
        )  # a waiter that gives up does not cancel it for the rest

    async def database(self) -> Sequence[Finding]:
        """The rows of the database; its schema is current afterwards."""
        return await asyncio.shield(self._database)


async def made(settings: Settings, stack: AsyncExitStack) -> Installation:
    """Make each part, and confine the process to the addresses that it may reach.

    A part that cannot be made becomes a finding in `problems`. Raises ConfigurationError where a
    provider's name is unknown.
    """
    problems: list[Finding] = []

    async def tried(part: str, make: Callable[[], Made], otherwise: Made) -> Made:
        try:
            return await asyncio.to_thread(make)  # certificates are read
        except ConfigurationError as error:
            problems.append(Finding(part, False, str(error)))
            return otherwise

    providers = make_providers(settings.llm, stack)
    if settings.llm.is_local_only:
        only_loopback = LocalHosts()  # an invalid list allows nothing
        local = await tried("local-only", lambda: local_hosts(settings, providers), only_loopback)
        stack.enter_context(confined_to(local))
    cluster = None
    try:
        cluster = await open_cluster(settings.kubernetes, stack, settings.observe.product_labels)
    except ConfigurationError as error:
        problems.append(Finding("kubernetes", False, str(error)))
    clock, unread = SystemClock(), _Unread()
    observed_in = await tried(
        "observe",
        lambda: make_observed(settings, clock, unread, unread, stack, cluster),
        lambda _rules, _channel: NOTHING,
    )
    none: Mapping[str, object] = {}
    await tried("adapters", lambda: bound(settings, stack), none)
    nobody: Mapping[str, Mapping[str, DeployFeed]] = {}
    feeds = await tried("deploys", lambda: make_feeds(settings, cluster, stack), nobody)
    return Installation(
        settings=settings,
        now=clock.now(),
        providers=providers,
        in_order=asked_in_order(settings.llm, providers),
        cluster=cluster,
        plugins=await asyncio.to_thread(open_plugins, settings, stack),
        feeds=feeds,
        observed_in=observed_in,
        problems=problems,
    )


class _Unread:
    async def between(self, product: str, interval: Interval) -> Sequence[Deploy]:
        del product, interval
        return ()

    def unread_sources(self) -> int:
        return 0

    async def search(self, query: IncidentQuery) -> Sequence[PastIncident]:
        del query
        return ()
