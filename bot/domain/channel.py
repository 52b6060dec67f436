"""What a channel is for and who may decide in it. First matching rule wins; none means deny."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class ChannelRule:
    """One `[[channels]]` entry. `session` may contain `{channel}`."""

    match: str
    session: str = "{channel}"
    products: tuple[str, ...] = ()
    toolset: str = "investigate"
    confirm: tuple[str, ...] = ()
    daily_usd_micros: int = 0  # 0: no limit of its own


# No match: asking is allowed, confirming is not.
UNMATCHED = ChannelRule(match="*")


def rule_for(rules: Sequence[ChannelRule], channel_name: str) -> ChannelRule:
    """The first rule whose glob matches the channel's name."""
    return next((r for r in rules if fnmatchcase(channel_name, r.match)), UNMATCHED)


def session_name(rule: ChannelRule, channel_name: str) -> str:
    """`incident-{channel}` → `incident-checkout`; a doubled prefix is kept as written."""
    return rule.session.replace("{channel}", channel_name or "direct")
