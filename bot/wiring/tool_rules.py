"""`[policy]` on top of the built-in toolsets. No I/O."""

from collections.abc import Mapping
from dataclasses import replace

from bot.settings.model import ChannelSettings, Settings
from bot.settings.policy import PolicySettings, ToolBudgetSettings, ToolsetSettings
from bot.settings.reading import ConfigurationError
from tools.call_limits import CallLimits
from tools.contract import Effect
from tools.policy import EVERYBODY, ToolPolicy


def under(settings: Settings, built_in: ToolPolicy) -> ToolPolicy:
    """The policy in force.

    Raises ConfigurationError for a channel's toolset or a role that does not exist.
    """
    policy = settings.policy
    toolsets = {**built_in.toolsets, **_toolsets(policy, built_in.toolsets)}
    for channel in settings.channels:
        if channel.toolset not in toolsets:
            raise ConfigurationError(
                f"channels: {channel.match!r} has the toolset {channel.toolset!r}, which does not "
                f"exist; there are: {', '.join(sorted(toolsets))}"
            )
    for name in sorted(policy.roles.keys() - settings.roles.keys() - {EVERYBODY}):
        raise ConfigurationError(f"policy.roles.{name}: there is no [roles.{name}]")
    return replace(
        built_in,
        toolsets=toolsets,
        effects=frozenset(Effect(name) for name in policy.effects),
        denied=policy.denied,
        roles={name: each.tools for name, each in policy.roles.items()},
        channels=tuple((each.match, each.tools) for each in policy.channels),
        purposes=frozenset(
            each.toolset for each in (*settings.channels, ChannelSettings(match="*"))
        ),
        limits={name: _limits(policy.budget, each) for name, each in policy.toolsets.items()},
        default_limits=_limits(policy.budget, None),
    )


def _toolsets(
    policy: PolicySettings, built_in: Mapping[str, tuple[str, ...]]
) -> Mapping[str, tuple[str, ...]]:
    named = {n: each.tools for n, each in policy.toolsets.items() if each.tools is not None}
    for name in sorted(policy.toolsets.keys() - named.keys() - built_in.keys()):
        raise ConfigurationError(f"policy.toolsets.{name}: names no tools")
    return named


def _limits(base: ToolBudgetSettings, toolset: ToolsetSettings | None) -> CallLimits:
    own = toolset.budget.model_dump(exclude_unset=True) if toolset else {}
    limits = base.model_copy(update=own)
    return CallLimits(
        calls=limits.calls,
        same_calls=limits.same_calls,
        turn_bytes=limits.turn_bytes,
        result_bytes=limits.result_bytes,
        call_time_s=limits.call_time.total_seconds(),
    )
