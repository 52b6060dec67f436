"""What a channel is for and who may decide in it. First matching rule wins; none means deny.

An unknown name is no name: what cannot be read gets the narrowest of every rule there is.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final, TypeAlias

from bot.domain.ids import Place
from bot.domain.tenancy import EVERY, HOME, holds_in
from tools.policy import fits_channel
from tools.products import Reading

# Names of what has none of its own; no platform lets a channel be called so.
DIRECT: Final = "@direct"
GROUP: Final = "@group"  # a direct message among several people
UNKNOWN: Final = ""  # the name could not be read
_NARROWEST_FIRST: Final = (Reading.STRICT, Reading.PRODUCTS)
_SESSION_NAMES: Final = {DIRECT: "direct", GROUP: "group"}


class Readers(StrEnum):
    OWN = "own"
    SHARED = "shared"  # another company too
    PENDING = "pending"  # another company once it has accepted
    UNKNOWN = "unknown"  # could not be read


@dataclass(frozen=True, slots=True)
class ChosenBackends:
    """The name of a backend for each family of signals; empty: the products choose."""

    logs: str = ""
    metrics: str = ""
    traces: str = ""
    errors: str = ""


BY_PRODUCTS: Final = ChosenBackends()


@dataclass(frozen=True, slots=True)
class ChannelRule:
    """One `[[channels]]` entry. `session` may contain `{channel}`.

    `products` bound what may be proposed and, as `reading` says, what tools may read; none: no
    bound. `shut` is a bound that leaves no product at all. `workspace` is the tenant it holds for, or
    `*`. `answers`: whether questions are answered at all.
    """

    match: str
    session: str = "{channel}"
    products: tuple[str, ...] = ()
    toolset: str = "investigate"
    confirm: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()  # who may ask over HTTP; none: who may confirm
    daily_usd_micros: int = 0  # 0: no limit of its own
    reading: Reading = Reading.PRODUCTS
    shut: bool = False
    workspace: str = HOME
    answers: bool = True
    backends: ChosenBackends = BY_PRODUCTS

    @property
    def is_bounded(self) -> bool:
        return self.shut or bool(self.products)

    @property
    def tools_read(self) -> Reading:
        """How far the products bound the tools."""
        return self.reading if self.is_bounded else Reading.ALL

    def covers(self, product: str) -> bool:
        """Whether something may be proposed for that product here."""
        return not self.is_bounded or product in self.products


# No match: asking is allowed, confirming is not.
UNMATCHED = ChannelRule(match="*")
# In another workspace without a matching rule: nothing is read, no question is answered.
CLOSED: Final = tuple(
    ChannelRule(match=match, shut=True, workspace=EVERY, answers=False)
    for match in ("*", DIRECT, GROUP)
)


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel's name as far as it is known, and its rule."""

    name: str
    rule: ChannelRule

    @property
    def is_known(self) -> bool:
        """Whether its name could be read."""
        return self.name != UNKNOWN

    @property
    def session_name(self) -> str:
        """What globs of sessions match now; nothing but `*` matches an unknown one."""
        if not self.is_known:
            return ""
        return session_name(self.rule, self.name)


@dataclass(frozen=True, slots=True)
class KeptName:
    """A channel's row: its name, empty once it was renamed, and when that was written.

    `age_s` is by the database's clock.
    """

    name: str
    written_at: datetime
    age_s: float


# The channel of a place, judged by the rules of this moment. Raises StorageUnavailable.
ChannelNow: TypeAlias = Callable[[Place], Awaitable[Channel]]


_UNREAD: Final = (
    "the channel's name cannot be read now, so its approvers are unknown. The proposal stays "
    "open: decide when the chat platform answers again, or ask on the operator's page or in "
    "`kortex chat`"
)


def out_of_place(now: Channel, shown_in: str, product: str) -> str | None:
    """Why a proposal shown there may not be decided on now; None when it may.

    `shown_in`: the channel then.
    """
    if not now.is_known:
        return _UNREAD
    if shown_in not in {UNKNOWN, now.name}:
        return "the channel was renamed since; ask for a new proposal"
    if not now.rule.covers(product):
        return not_covered(now, product)
    return None


def not_covered(channel: Channel, product: str) -> str:
    """Say in words that the action is not for this product here."""
    if not channel.is_known:
        return f"the channel's name cannot be read now, so nothing may be proposed for {product}"
    whose = ", ".join(channel.rule.products)
    return f"this channel is for {whose}, so nothing may be proposed for {product} here"


def missing_approvers(channel: Channel) -> str:
    """Say in words that no role may confirm in a known one, and in which rule one would be named."""
    there, whose = {
        DIRECT: ("in direct messages", "direct messages"),
        GROUP: ("in group messages", "group messages"),
    }.get(channel.name, ("in this channel", channel.name))
    match = channel.name if channel.rule is UNMATCHED else channel.rule.match
    return (
        f"no role may confirm {there}: an operator must name one in the rule of {whose}; in "
        f'kortex.toml that is confirm under [[channels]] with match = "{match}". '
        "No card was posted"
    )


def rules_for(rules: Sequence[ChannelRule], tenant: str) -> Sequence[ChannelRule]:
    """The rules of that tenant. Beyond its own rules another workspace gets nothing.

    Data that may not belong to its products is not read there either: it may be home's.
    """
    found = tuple(rule for rule in rules if holds_in(rule.workspace, tenant))
    if tenant == HOME:
        return found
    narrow = Reading.PRODUCTS
    strict = (replace(r, reading=Reading.STRICT) if r.reading is narrow else r for r in found)
    return (*strict, *CLOSED)


def channel_of(rules: Sequence[ChannelRule], name: str) -> Channel:
    return Channel(name, rule_for(rules, name))


def rule_for(rules: Sequence[ChannelRule], channel_name: str) -> ChannelRule:
    """The first rule with a glob that matches the channel's name; the narrowest for no name."""
    if channel_name == UNKNOWN:
        return narrowest(rules)
    return next((r for r in rules if fits_channel(channel_name, r.match)), UNMATCHED)


def products_elsewhere(rules: Sequence[ChannelRule], rule: ChannelRule) -> tuple[str, ...]:
    named = dict.fromkeys(product for each in rules for product in each.products)
    return tuple(product for product in named if product not in rule.products)


def narrowest(rules: Sequence[ChannelRule]) -> ChannelRule:
    """The intersection of all answering rules, which is right for any rule of the channel.

    The tool policy decides the tools: it knows an unknown channel by its name.
    """
    rules = [rule for rule in rules if rule.answers] or rules
    bounds = [rule.products for rule in rules if rule.is_bounded]
    common = tuple(p for p in (bounds[0] if bounds else ()) if all(p in each for each in bounds))
    readings = [rule.tools_read for rule in rules]
    limits = [rule.daily_usd_micros for rule in rules if rule.daily_usd_micros]
    return ChannelRule(
        match=UNKNOWN,
        products=common,
        daily_usd_micros=min(limits, default=0),
        reading=next((each for each in _NARROWEST_FIRST if each in readings), Reading.ALL),
        shut=bool(bounds) and not common,
        answers=all(rule.answers for rule in rules),
    )


def session_name(rule: ChannelRule, channel_name: str) -> str:
    """`incident-{channel}` → `incident-checkout`; a doubled prefix is kept as written."""
    shown = _SESSION_NAMES.get(channel_name, channel_name) or "unknown"
    return rule.session.replace("{channel}", shown)
