"""From settings to what tools look at: one set of capabilities per channel's backends.

`bot.app` decides what is put together.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from adapters.control_plane.admin_info import HttpAdminInfo
from adapters.control_plane.port import BadTemplate, check_template
from adapters.observe.cursor import UnsealedCodec
from adapters.platform.connections import PREFIX
from bot.domain.channel import ChannelRule
from bot.settings.model import (
    ControlPlaneSettings,
    PatternsSettings,
    PlatformSettings,
    Settings,
)
from bot.settings.observe import ObserveSettings
from bot.settings.reading import ConfigurationError
from bot.wiring.backend_kinds import open_errors, open_logs, open_metrics, open_traces
from bot.wiring.backends import Cluster
from bot.wiring.chosen import NoBackend, Pick, Picks, picks
from bot.wiring.routes import backend_client
from tools.capabilities import (
    AdminInfo,
    Capabilities,
    Clock,
    ClusterOffer,
    Deploys,
    IncidentHistory,
    Logs,
    Metrics,
    Patterns,
    Platform,
    Proposals,
    Traces,
)
from tools.cluster_objects import Kubernetes
from tools.error_issues import ErrorIssues
from tools.operation import Operations

if TYPE_CHECKING:
    from adapters.recorded.simulator.incidents import RecordedIncidents


B = TypeVar("B")
S = TypeVar("S")


class SystemClock:
    """Wall time in UTC. Expiry and budgets are judged by the database's clock, not by this one."""

    def now(self) -> datetime:
        """The time now, aware, in UTC."""
        return datetime.now(UTC)


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """What one channel's tools look at; None is not configured. Channels that share it see the same."""

    logs: Logs | None = None
    metrics: Metrics | None = None
    traces: Traces | None = None
    errors: ErrorIssues | None = None
    deploys: Deploys | None = None
    incidents: IncidentHistory | None = None
    rollouts: Deploys | None = None
    kubernetes: Kubernetes | None = None
    admin: AdminInfo | None = None
    platform: Platform | None = None
    offer: ClusterOffer | None = None
    patterns: Patterns | None = None

    def capabilities(
        self, clock: Clock, operations: Operations, proposals: Proposals
    ) -> Capabilities:
        """What the runner gives to tools."""
        seen = {field.name: getattr(self, field.name) for field in fields(self)}
        return Capabilities(clock=clock, operations=operations, proposals=proposals, **seen)


# What a channel of that name looks at, under the rules of its workspace as they are now.
ObservedIn: TypeAlias = Callable[[Sequence[ChannelRule], str], Observed]


@dataclass(frozen=True, slots=True)
class World:
    """Something else than the configured backends, at another time: a recorded incident."""

    clock: Clock
    observed: Observed


@dataclass(frozen=True, slots=True)
class Played:
    """How a demo plays: seconds between a triage's words, and the incidents that it has a hand in."""

    pace_s: float = 0.0
    incidents: "RecordedIncidents | None" = None


UNPLAYED: Final = Played()


def make_observed(
    settings: Settings,
    clock: Clock,
    stored_deploys: Deploys,
    stored_incidents: IncidentHistory,
    stack: AsyncExitStack,
    cluster: Cluster | None = None,
    incidents: "RecordedIncidents | None" = None,
) -> ObservedIn:
    """What a channel looks at. Recorded backends play one incident per channel.

    `incidents` are those played, where somebody else has a hand in them.
    Raises ConfigurationError where recorded and live backends are mixed.
    """
    observe = settings.observe
    families = (observe.logs, observe.metrics, observe.traces, observe.errors)
    kinds = {each.kind for each in families} - {"none"}
    kinds |= {one.kind for each in families for one in each.named.values()}
    asked = _Asked(
        make_admin_info(settings.control_plane, stack),
        make_platform(settings.platform, stack),
        make_patterns(settings.patterns),
    )
    if kinds == {"recorded"}:
        # Twenty-five modules that a bot with backends of its own never needs.
        from adapters.recorded.simulator.incidents import RecordedIncidents

        played = incidents or RecordedIncidents(clock, UnsealedCodec())
        return _recorded(played, stored_incidents, asked)
    if "recorded" in kinds:
        raise ConfigurationError(
            "observe: recorded backends stand alone; set every kind to recorded, or none of them"
        )
    shared = Observed(
        deploys=stored_deploys,
        incidents=stored_incidents,
        rollouts=cluster.rollouts if cluster else None,
        kubernetes=cluster.reader if cluster else None,
        admin=asked.admin,
        platform=asked.platform,
        offer=cluster.offer if cluster else None,
        patterns=asked.patterns,
    )
    return _live(observe, shared, clock, stack)


def _live(
    observe: ObserveSettings, shared: Observed, clock: Clock, stack: AsyncExitStack
) -> ObservedIn:
    """Every backend is opened once, whoever chooses it, and remembers for itself alone."""
    labels = observe.product_labels
    logs, metrics, traces = observe.logs, observe.metrics, observe.traces
    errors = observe.errors
    all_logs = {
        name: open_logs(each, labels, table, stack)
        for name, table, each in _tables("observe.logs", logs, logs.named)
    }
    all_metrics = {
        name: open_metrics(each, labels, clock, table, stack)
        for name, table, each in _tables("observe.metrics", metrics, metrics.named)
    }
    all_traces = {
        name: open_traces(each, table, stack)
        for name, table, each in _tables("observe.traces", traces, traces.named)
    }

    all_errors = {
        name: open_errors(each, table, stack)
        for name, table, each in _tables("observe.errors", errors, errors.named)
    }

    @cache
    def at(chosen: Picks) -> Observed:
        return replace(
            shared,
            logs=_picked(all_logs, chosen.logs),
            metrics=_picked(all_metrics, chosen.metrics),
            traces=_picked(all_traces, chosen.traces),
            errors=_picked(all_errors, chosen.errors),
        )

    return lambda rules, channel: at(picks(observe, rules, channel))


def _tables(table: str, default: B, named: Mapping[str, B]) -> Iterator[tuple[str, str, B]]:
    """Each backend with its name, "" for the default, and the table that an error names."""
    yield "", table, default
    for name, each in named.items():
        yield name, f"{table}.{name}", each


def _picked(backends: Mapping[str, S], pick: Pick) -> S | NoBackend:
    return NoBackend(pick.why) if pick.why else backends[pick.name]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What does not depend on the channel; None is not configured."""

    admin: AdminInfo | None
    platform: Platform | None
    patterns: Patterns | None


def _recorded(incidents: "RecordedIncidents", stored: IncidentHistory, asked: _Asked) -> ObservedIn:
    """Where a real one is configured, it stands beside what is recorded."""
    from adapters.recorded.simulator.cluster_offer import RecordedOffer
    from adapters.recorded.simulator.history import RecordedHistory, past_incidents
    from adapters.recorded.simulator.pages import recorded_pages

    first = next(iter(incidents.scenarios))
    history = RecordedHistory(past_incidents(incidents.anchor), beside=stored)

    @cache
    def of_incident(name: str) -> Observed:
        recorded = incidents.of(name)
        return Observed(
            logs=recorded.logs,
            metrics=recorded.metrics,
            traces=recorded.traces,
            deploys=recorded.deploys,
            incidents=history,
            kubernetes=recorded.kubernetes,
            admin=asked.admin or recorded.admin,
            platform=asked.platform or recorded.platform,
            offer=RecordedOffer(),
            patterns=asked.patterns or recorded_pages(),
        )

    def look(_rules: Sequence[ChannelRule], channel: str) -> Observed:
        name = incidents.name_in(channel) or first
        incidents.look(name)
        return of_incident(name)

    return look


def make_admin_info(settings: ControlPlaneSettings, stack: AsyncExitStack) -> AdminInfo | None:
    """None when the control plane is not asked. Raises ConfigurationError."""
    if settings.kind != "http":
        return None
    try:
        check_template(settings.info_url)
    except BadTemplate as error:
        raise ConfigurationError(f"control_plane.info_url: {error}") from error
    client = backend_client(settings.info_url, settings, "control_plane.info_url", stack)
    return HttpAdminInfo(client, settings.info_url)


def make_platform(settings: PlatformSettings, stack: AsyncExitStack) -> Platform | None:
    """None when there is no platform. Raises ConfigurationError."""
    if settings.kind != "http":
        return None
    from adapters.platform.http_platform import HttpPlatform

    tokens = {f"{PREFIX}{name}": one.token for name, one in settings.connections.items()}
    return HttpPlatform(
        backend_client(settings.url, settings, "platform.url", stack),
        lambda connection: tokens[connection].get_secret_value(),
    )


def make_patterns(settings: PatternsSettings) -> Patterns | None:
    """None without a folder."""
    if not settings.folder:
        return None
    from adapters.written_pages import FolderPages

    return FolderPages(Path(settings.folder).expanduser())
