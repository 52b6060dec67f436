"""The shape of `[[alerts]]`: which alerts open a thread, in which channel, and with which question."""

import re
from datetime import timedelta
from typing import Annotated, Final, Literal

import re2
from pydantic import AfterValidator, Field

from bot.settings.section import Duration, NotEmpty, Section
from bot.settings.slack_ids import ChannelId

_NAMES: Final = re.compile(r"\{[^{}]*\}|[{}]")
_KNOWN: Final = frozenset({"{product}", "{since}"})


def _pattern(text: str) -> str:
    try:
        re2.compile(text)
    except re2.error as error:
        raise ValueError(f"{text!r} is not an RE2 pattern: {error}") from error
    return text


def _template(text: str) -> str:
    unknown = [name for name in _NAMES.findall(text) if name not in _KNOWN]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not known here; write {{product}} or {{since}}")
    return text


Pattern = Annotated[str, AfterValidator(_pattern)]
Template = Annotated[str, Field(max_length=1_000), AfterValidator(_template)]
RuleName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*$", max_length=64)]


class AlertSettings(Section):
    """One `[[alerts]]`; the first that takes an alert has it, and one without `match` takes all.

    `match` are labels' whole values, `match_re` RE2 patterns of whole values. `product` empty: read
    from the labels. `question` may hold `{product}` and `{since}`.
    """

    name: RuleName
    channel: ChannelId
    match: dict[NotEmpty, str] = Field(default_factory=dict)
    match_re: dict[NotEmpty, Pattern] = Field(default_factory=dict)
    sources: tuple[Literal["alertmanager", "grafana", "pagerduty", "cloudevents"], ...] = ()
    product: str = Field(default="", pattern=r"^[^\s{}<>]*$", max_length=100)
    question: Template = ""
    join_within: Duration = timedelta(minutes=15)
    rejoin_within: Duration = timedelta(hours=4)


class AlertLimitSettings(Section):
    """`[policy.alerts]`: the most that alerts may start, all together; 0 dollars is no limit.

    Above `threads_per_hour` alerts of a rule share one thread; above the other limits nothing is
    investigated.
    """

    threads_per_hour: int = Field(default=20, ge=1, le=1_000)
    investigations_per_hour: int = Field(default=10, ge=0, le=1_000)
    daily_usd_limit: float = Field(default=0.0, ge=0, le=1_000_000.0)
