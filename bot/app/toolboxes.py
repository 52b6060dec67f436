"""Which toolbox a call uses: one for all channels, or one per recorded incident, under `[policy]`.

Made anew when the operator's own tools or the policy change; calls under way keep theirs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from bot.app import rules
from bot.app.backend_selection import Observed
from bot.chat.tool_calls import Toolbox
from bot.domain.channel import UNKNOWN
from bot.domain.ids import TeamId
from bot.domain.tool_status import ToolHealth, ToolReport
from bot.reports.tools import tool_report
from bot.settings.model import ChannelSettings, Settings
from bot.settings.policy import PolicySettings, ToolBudgetSettings, ToolsetSettings
from bot.settings.reading import ConfigurationError
from bot.upkeep.reload import Prepared
from tools.call_limits import CallLimits
from tools.capabilities import CallContext, Capabilities
from tools.contract import AnyTool, Effect
from tools.policy import EVERYBODY, ToolPolicy

MakeToolbox = Callable[[Sequence[AnyTool], ToolPolicy, Capabilities], Toolbox]


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


class OwnTools(Protocol):
    """Tools that the operator brings. `version` grows when the others change."""

    @property
    def version(self) -> int:
        """Counts from 0 how often the tools have changed."""
        ...

    @property
    def tools(self) -> Sequence[AnyTool]:
        """As they are now."""
        ...

    @property
    def sessions(self) -> Mapping[str, tuple[str, ...]]:
        """Globs of session names by tool id."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """What an operator should know: what was not loaded, where it stands, and why."""
        ...


class Toolboxes:
    """Raises ConfigurationError at construction for a policy that names what does not exist."""

    def __init__(
        self,
        settings: Settings,
        built_in: Sequence[AnyTool],
        own: Sequence[OwnTools],
        observed_in: Callable[[TeamId, str], Observed],
        bind: Callable[[Observed], Capabilities],
        make: MakeToolbox,
    ) -> None:
        self._settings = settings
        self._built_in = built_in
        self._own = own
        self._observed_in = observed_in
        self._bind = bind
        self._make = make
        self._policy_version = 0
        self._made: dict[Observed, tuple[tuple[int, ...], Toolbox]] = {}
        policy_of(settings, own)

    def choose(self, call: CallContext) -> Toolbox:
        """The toolbox of the call's channel."""
        observed = self._observed_in(TeamId(call.team), call.channel)
        version = (self._policy_version, *(each.version for each in self._own))
        if observed not in self._made or self._made[observed][0] != version:
            policy = policy_of(self._settings, self._own)
            made = self._make(self._tools(), policy, self._bind(observed))
            self._made[observed] = version, made
        return self._made[observed][1]

    @property
    def roles_named(self) -> tuple[str, ...]:
        """The roles that the policy names, which a turn has to know of."""
        return tuple(name for name in self._settings.policy.roles if name != EVERYBODY)

    def report(self, health: Mapping[str, ToolHealth]) -> ToolReport:
        """For operators; of a channel that matches no recorded incident."""
        return tool_report(
            self._tools(),
            policy_of(self._settings, self._own),
            self._bind(self._observed_in(TeamId(""), UNKNOWN)),
            health,
            notes=[note for each in self._own for note in each.notes],
        )

    async def prepare(self, settings: Settings) -> Prepared:
        """The policy of other settings. Raises ConfigurationError."""
        policy_of(settings, self._own)

        def put_in_force() -> None:
            read = ("policy", "channels", "roles")
            now = {name: getattr(settings, name) for name in read}
            self._settings = self._settings.model_copy(update=now)
            self._policy_version += 1

        return Prepared(put_in_force)

    def _tools(self) -> list[AnyTool]:
        return [*self._built_in, *(tool for each in self._own for tool in each.tools)]


def policy_of(settings: Settings, own: Sequence[OwnTools]) -> ToolPolicy:
    """The policy in force. Raises ConfigurationError."""
    sessions = {name: globs for each in own for name, globs in each.sessions.items()}
    return under(settings, rules.tool_policy(settings, sessions))
