"""What a channel's tools look at: the backends that it names, or that its products choose.

Without a known backend the channel looks at none, and people see why."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias, TypeVar

from adapters.observe.cursor import UnsealedCodec
from bot.app.backend_kinds import (
    Cluster,
    make_admin_info,
    make_patterns,
    make_platform,
    open_errors,
    open_logs,
    open_metrics,
    open_traces,
)
from bot.domain.channel import UNKNOWN, UNMATCHED, ChannelRule, rule_for
from bot.domain.ids import TeamId
from bot.settings.model import Settings
from bot.settings.named_backends import DEFAULT, FAMILIES, ByName, Family, owners
from bot.settings.observe import LogsSettings, MetricsSettings, ObserveSettings, TracesSettings
from bot.settings.reading import ConfigurationError
from tools.capabilities import (
    AdminInfo,
    Capabilities,
    Clock,
    DeployRecords,
    Deploys,
    IncidentHistory,
    Logs,
    Metrics,
    Platform,
    Proposals,
    Traces,
)
from tools.cluster_objects import Kubernetes
from tools.cluster_offer import ClusterOffer, Patterns
from tools.error_issues import ErrorIssues
from tools.errors import NobodyToAsk
from tools.operation import Operations

if TYPE_CHECKING:
    from adapters.recorded.simulator.incidents import RecordedIncidents


ANY_PRODUCT = "*"
B = TypeVar("B")
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Pick:
    """`name` of a backend, empty for the default; or `why` there is none."""

    name: str = ""
    why: str = ""

    def __str__(self) -> str:
        return f"none ({self.why})" if self.why else self.name or DEFAULT


@dataclass(frozen=True, slots=True)
class Picks:
    logs: Pick = Pick()
    metrics: Pick = Pick()
    traces: Pick = Pick()
    errors: Pick = Pick()

    @property
    def are_known(self) -> bool:
        return not (self.logs.why or self.metrics.why or self.traces.why or self.errors.why)


def picks(observe: ObserveSettings, rules: Sequence[ChannelRule], channel: str) -> Picks:
    """The backends of a channel by its name, under the rules of its workspace."""
    if channel != UNKNOWN:
        return picks_of(observe, rule_for(rules, channel))
    return Picks(*(_agreed(family, observe, rules) for family in FAMILIES))


def picks_of(observe: ObserveSettings, rule: ChannelRule) -> Picks:
    return Picks(*(_of_rule(family, observe, rule) for family in FAMILIES))


def named_tables(
    observe: ObserveSettings, rules: Sequence[ChannelRule], channel: str
) -> tuple[tuple[str, str], ...]:
    """The backends that the channel chose by name, by family: ("metrics", "observe.metrics.eu")."""
    found = picks(observe, rules, channel)
    chosen = ((family, getattr(found, family).name) for family in FAMILIES)
    return tuple((family, f"observe.{family}.{name}") for family, name in chosen if name)


def picked_words(observe: ObserveSettings, found: Picks) -> str:
    """Of the families that have a backend at all: `logs eu, metrics default`."""
    return ", ".join(
        f"{family} {_words(observe, family, getattr(found, family))}"
        for family in FAMILIES
        if named_of(observe, family) or _has_default(observe, family)
    )


def _words(observe: ObserveSettings, family: Family, pick: Pick) -> str:
    if str(pick) == DEFAULT and not _has_default(observe, family):
        return f"none ([observe.{family}] itself has none, only those by name)"
    return str(pick)


def _has_default(observe: ObserveSettings, family: Family) -> bool:
    return bool(getattr(observe, family).kind != "none")


def named_of(observe: ObserveSettings, family: Family) -> Mapping[str, ByName]:
    """The tables of a family by name, without the default."""
    named: Mapping[str, ByName] = getattr(observe, family).named
    return named


def _agreed(family: Family, observe: ObserveSettings, rules: Sequence[ChannelRule]) -> Pick:
    """The pick that all rules agree on, because the channel's rule is not known."""
    answering = [rule for rule in rules if rule.answers]
    possible = [*answering, UNMATCHED] if len(answering) == len(rules) else answering
    agreed = {_of_rule(family, observe, rule) for rule in possible}
    if len(agreed) == 1:
        return agreed.pop()
    return Pick(why=f"the channel's name cannot be read, so its {family} backend is unknown")


def _of_rule(family: Family, observe: ObserveSettings, rule: ChannelRule) -> Pick:
    named = named_of(observe, family)
    chosen: str = getattr(rule.backends, family)
    nowhere = not named and getattr(observe, family).kind == "none"
    if chosen == DEFAULT or nowhere or not (chosen or named):
        return Pick()
    if chosen:
        there = chosen in named
        return Pick(chosen) if there else Pick(why=f"there is no [observe.{family}.{chosen}]")
    if rule.shut:
        return Pick(why=f"no product is this channel's, so no {family} backend is")
    if not rule.products or ANY_PRODUCT in rule.products:
        return Pick()
    of = owners(named)
    names = sorted({of.get(product, "") for product in rule.products})
    if len(names) == 1:
        return Pick(names[0])
    several = ", ".join(name or DEFAULT for name in names)
    return Pick(
        why=f"the channel's products are of several {family} backends ({several}); set "
        "`backends` to one of them"
    )


def evidence_links(
    observe: ObserveSettings, rules_at: Callable[[TeamId], Sequence[ChannelRule]]
) -> Callable[[TeamId, str], Mapping[str, str]] | None:
    """Where an opened result is found in people's own tools, by family of signals; "" is nowhere.

    Of the backends that the channel looks at. None where no backend has a link.
    """
    families: Mapping[str, LogsSettings | MetricsSettings | TracesSettings]
    families = {"logs": observe.logs, "metrics": observe.metrics, "traces": observe.traces}
    links = {
        family: {"": table.link, **{name: one.link for name, one in table.named.items()}}
        for family, table in families.items()
    }
    if not any(link for each in links.values() for link in each.values()):
        return None

    def of(team: TeamId, channel: str) -> Mapping[str, str]:
        at = picks(observe, rules_at(team), channel)
        chosen = {"logs": at.logs, "metrics": at.metrics, "traces": at.traces}
        return {f: "" if pick.why else links[f][pick.name] for f, pick in chosen.items()}

    return of


@dataclass(frozen=True, slots=True)
class NoBackend:
    """Any family of a channel that looks at none of it: a question is refused with the reason."""

    why: str

    async def query(self, *_asked: object, **_more: object) -> NoReturn:
        """Raises NobodyToAsk."""
        raise NobodyToAsk(self.why)

    discover = count = sweep = query_range = promql = get = search = sample = query


class SystemClock:
    """Wall time in UTC. Expiry and budgets are judged by the database's clock, not by this one."""

    def now(self) -> datetime:
        return datetime.now(UTC)


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """What one channel's tools look at; None is not configured. Channels that share it see the same."""

    logs: Logs | None = None
    metrics: Metrics | None = None
    traces: Traces | None = None
    errors: ErrorIssues | None = None
    deploys: DeployRecords | None = None
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
        seen = {field.name: getattr(self, field.name) for field in fields(self)}
        return Capabilities(clock=clock, operations=operations, proposals=proposals, **seen)


# What a channel of that name looks at, under the rules of its workspace as they are now.
ObservedIn: TypeAlias = Callable[[Sequence[ChannelRule], str], Observed]


@dataclass(frozen=True, slots=True)
class RecordedWorld:
    """Something else than the configured backends, at another time: a recorded incident."""

    clock: Clock
    observed: Observed


@dataclass(frozen=True, slots=True)
class Playback:
    """How a demo plays: seconds between a triage's words, and the incidents that it has a hand in."""

    pace_s: float = 0.0
    incidents: "RecordedIncidents | None" = None


NO_PLAYBACK: Final = Playback()


def make_observed(
    settings: Settings,
    clock: Clock,
    stored_deploys: DeployRecords,
    stored_incidents: IncidentHistory,
    stack: AsyncExitStack,
    cluster: Cluster | None = None,
    incidents: "RecordedIncidents | None" = None,
) -> ObservedIn:
    """The backends of a channel. Recorded backends play one incident per channel.

    `incidents` are those played, if a caller controls them. Raises ConfigurationError for a mix of
    recorded and live backends.
    """
    observe = settings.observe
    families = (observe.logs, observe.metrics, observe.traces, observe.errors)
    kinds = {each.kind for each in families} - {"none"}
    kinds |= {one.kind for each in families for one in each.named.values()}
    everywhere = Observed(
        admin=make_admin_info(settings.control_plane, stack),
        platform=make_platform(settings.platform, stack),
        patterns=make_patterns(settings.patterns),
    )
    if kinds == {"recorded"}:
        # Twenty-five modules that a bot with backends of its own never needs.
        from adapters.recorded.simulator.incidents import RecordedIncidents

        incidents = incidents or RecordedIncidents(clock, UnsealedCodec())
        return _recorded(incidents, stored_incidents, everywhere)
    if "recorded" in kinds:
        raise ConfigurationError(
            "observe: recorded backends cannot be mixed; set every kind to recorded, or none"
        )
    shared = replace(
        everywhere,
        deploys=stored_deploys,
        incidents=stored_incidents,
        rollouts=cluster.rollouts if cluster else None,
        kubernetes=cluster.reader if cluster else None,
        offer=cluster.offer if cluster else None,
    )
    return _live(observe, shared, clock, stack)


def _live(
    observe: ObserveSettings, shared: Observed, clock: Clock, stack: AsyncExitStack
) -> ObservedIn:
    """Every backend is opened once for all channels, with its own cache."""
    labels = observe.product_labels
    logs, metrics = observe.logs, observe.metrics
    traces, errors = observe.traces, observe.errors
    all_logs = _opened("logs", logs, logs.named, lambda b, at: open_logs(b, labels, at, stack))
    all_metrics = _opened(
        "metrics", metrics, metrics.named, lambda b, at: open_metrics(b, labels, clock, at, stack)
    )
    all_traces = _opened("traces", traces, traces.named, lambda b, at: open_traces(b, at, stack))
    all_errors = _opened("errors", errors, errors.named, lambda b, at: open_errors(b, at, stack))

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


def _opened(
    family: str, default: B, named: Mapping[str, B], open_: Callable[[B, str], S]
) -> Mapping[str, S]:
    table, backends = f"observe.{family}", {"": default, **named}
    return {n: open_(each, f"{table}.{n}" if n else table) for n, each in backends.items()}


def _picked(backends: Mapping[str, S], pick: Pick) -> S | NoBackend:
    return NoBackend(pick.why) if pick.why else backends[pick.name]


def _recorded(
    incidents: "RecordedIncidents", stored: IncidentHistory, real: Observed
) -> ObservedIn:
    from adapters.recorded.simulator.cluster_offer import RecordedOffer
    from adapters.recorded.simulator.history import RecordedHistory, past_incidents, recorded_pages

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
            admin=real.admin or recorded.admin,
            platform=real.platform or recorded.platform,
            offer=RecordedOffer(),
            patterns=real.patterns or recorded_pages(),
        )

    def look(_rules: Sequence[ChannelRule], channel: str) -> Observed:
        name = incidents.name_in(channel) or first
        incidents.look(name)
        return of_incident(name)

    return look
