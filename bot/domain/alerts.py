"""Alerts of other systems: an alert, its rule, and its thread.

A sender's text (titles, labels) is untrusted everywhere: cut and redacted on arrival.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from bot.domain.ids import ChannelId, MessageTs

TITLE_CHARS: Final = 300
MOST_LABELS: Final = 40
LABEL_CHARS: Final = 100
VALUE_CHARS: Final = 300


class AlertState(StrEnum):
    FIRING = "firing"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert as its sender reported it. `group`: the sender's incident.

    (`source`, `id`) is the same for every firing, and in each group that has the alert.
    `changed_at`: since when it has this state.
    """

    source: str
    group: str
    id: str
    state: AlertState
    title: str
    labels: Mapping[str, str]
    changed_at: datetime

    @property
    def is_firing(self) -> bool:
        return self.state is AlertState.FIRING


Matches = Callable[[str], bool]
# Which product labels speak of; empty where none does.
ProductOf = Callable[[Mapping[str, str]], str]


@dataclass(frozen=True, slots=True)
class AlertRule:
    """One `[[alerts]]`. All of `match` hold for an alert that is its; no `match` takes every one.

    `product` empty: read from the labels. `question` may hold `{product}` and `{since}`; empty: the
    usual one. Within `join_s` of its opening other alerts of the rule and product join a thread, and
    within `rejoin_s` of its end what fires again does.
    """

    name: str
    channel: ChannelId
    match: Mapping[str, Matches] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    product: str = ""
    question: str = ""
    join_s: float = 900.0
    rejoin_s: float = 14_400.0

    def takes(self, alert: Alert) -> bool:
        """Whether it is this rule's. A label that is not there is empty, as in Alertmanager."""
        if self.sources and alert.source not in self.sources:
            return False
        return all(matches(alert.labels.get(name, "")) for name, matches in self.match.items())


@dataclass(frozen=True, slots=True)
class AlertLimits:
    """What alerts may start, all rules together. `daily_usd_micros` 0: no limit of their own."""

    threads_per_hour: int = 20
    investigations_per_hour: int = 10
    daily_usd_micros: int = 0


def rule_of(rules: Sequence[AlertRule], alert: Alert) -> AlertRule | None:
    """The first rule that takes it."""
    return next((rule for rule in rules if rule.takes(alert)), None)


@dataclass(frozen=True, slots=True)
class FiledAlert:
    """An alert under its rule, redacted and cut. `key` is derived from its source and id.

    `former_key`, of its source, group and id, is on rows of earlier releases.
    """

    alert: Alert
    rule: AlertRule
    product: str
    key: str
    group_key: str
    former_key: str = ""


class Investigation(StrEnum):
    DUE = "due"
    BEGUN = "begun"
    LEFT_OUT = "left_out"  # a limit was in the way


@dataclass(frozen=True, slots=True)
class ListedAlert:
    """One alert of a thread. `since`: as its sender says; `fires`: how often it began."""

    title: str
    labels: Mapping[str, str]
    state: AlertState
    since: datetime
    fires: int


@dataclass(frozen=True, slots=True)
class AlertThread:
    """One incident: its thread and its alerts; `listed` are shown by name.

    `product` is empty for several, or if unknown. `is_overflow`: it holds alerts beyond the most
    threads. `left_out` names the limit that prevented its investigation.
    """

    id: str
    rule: str
    product: str
    channel: ChannelId
    question: str
    opened_at: datetime
    heard_at: datetime
    investigation: Investigation
    left_out: str = ""
    thread_ts: MessageTs | None = None
    note_ts: MessageTs | None = None
    resolved_at: datetime | None = None
    ends: int = 0  # how often all of them were resolved
    is_overflow: bool = False
    firing: int = 0
    total: int = 0
    repeats: int = 0
    listed: tuple[ListedAlert, ...] = ()

    @property
    def since(self) -> datetime:
        """When the first of those listed began; before that it is not known."""
        return min((each.since for each in self.listed), default=self.opened_at)
