"""Which of several backends a channel looks at: the one it names, or the one its products choose.

What is unknown or ambiguous is nobody's: the channel then looks at none, and is told why.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from bot.domain.channel import UNKNOWN, UNMATCHED, ChannelRule, rule_for
from bot.domain.ids import TeamId
from bot.settings.named_backends import DEFAULT, FAMILIES, ByName, Family, owners
from bot.settings.observe import LogsSettings, MetricsSettings, ObserveSettings, TracesSettings
from tools.errors import NobodyToAsk

ANY_PRODUCT = "*"


@dataclass(frozen=True, slots=True)
class Pick:
    """`name` of a backend, empty for the default; or `why` there is none."""

    name: str = ""
    why: str = ""

    def __str__(self) -> str:
        return f"none ({self.why})" if self.why else self.name or DEFAULT


@dataclass(frozen=True, slots=True)
class Picks:
    """Of one channel."""

    logs: Pick = Pick()
    metrics: Pick = Pick()
    traces: Pick = Pick()
    errors: Pick = Pick()

    @property
    def are_known(self) -> bool:
        """Whether each family has a backend."""
        return not (self.logs.why or self.metrics.why or self.traces.why or self.errors.why)


def picks(observe: ObserveSettings, rules: Sequence[ChannelRule], channel: str) -> Picks:
    """Of a channel by its name, under the rules of its workspace."""
    if channel != UNKNOWN:
        return picks_of(observe, rule_for(rules, channel))
    return Picks(*(_agreed(family, observe, rules) for family in FAMILIES))


def picks_of(observe: ObserveSettings, rule: ChannelRule) -> Picks:
    """Of a channel that stands under that rule."""
    return Picks(*(_of_rule(family, observe, rule) for family in FAMILIES))


def named_tables(
    observe: ObserveSettings, rules: Sequence[ChannelRule], channel: str
) -> tuple[tuple[str, str], ...]:
    """Of the families whose backend that channel chose by name: ("metrics", "observe.metrics.eu")."""
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
    """Whichever of them the channel stands under: what they agree about is right."""
    answering = [rule for rule in rules if rule.answers]
    possible = [*answering, UNMATCHED] if len(answering) == len(rules) else answering
    agreed = {_of_rule(family, observe, rule) for rule in possible}
    if len(agreed) == 1:
        return agreed.pop()
    return Pick(why=f"the channel's name cannot be read, so its {family} backend is not known")


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
        why=f"the channel's products are of several {family} backends ({several}); "
        "it has to name one as `backends`"
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
