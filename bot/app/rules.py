"""From settings to the plain values the product runs by. No I/O."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path

import sqlalchemy as sa
from pydantic import SecretStr

from adapters.control_plane.port import Endpoint, ExecutorKind, Reads
from adapters.platform.connections import PREFIX as PLATFORM_CONNECTIONS
from bot.actions.catalog import ActionCatalog, ActionRule
from bot.alerts.matching import both, fits, is_exactly
from bot.alerts.wire import AlertWire
from bot.audit.chain import AuditKeys
from bot.chat.turn_request import TurnConfig
from bot.domain.alerts import AlertLimits, AlertRule, Matches
from bot.domain.budget import BudgetLimits
from bot.domain.channel import ChannelRule, ChosenBackends
from bot.domain.freeze import FreezeWindow
from bot.domain.ids import ChannelId
from bot.domain.roles import ConnectionRule
from bot.domain.tenancy import TenantOf, single_tenant
from bot.settings.actions import ActionSettings
from bot.settings.alerts import AlertSettings
from bot.settings.model import ChannelSettings, Settings
from bot.settings.policy import PolicySettings, ToolBudgetSettings, ToolsetSettings
from bot.settings.reading import ConfigurationError
from bot.slack.ingress.access import SlackAccess
from bot.store.address import POSTGRESQL, is_behind_pgbouncer, synchronous
from bot.store.engines import IDLE_IN_TRANSACTION_S
from tools.call_limits import CallLimits
from tools.contract import LOOKUP, PROPOSE_TOOL_ID, Effect
from tools.core.all import built_in_toolsets
from tools.policy import EVERYBODY, ToolPolicy

USD_MICROS = 1_000_000
PROPOSE_TOOL = PROPOSE_TOOL_ID.removeprefix("core__")
# What each purpose may use, by the declarations of the built-in tools.
TOOLSETS = built_in_toolsets()
# The fields of an action that differ between the settings and the rule.
_MADE = {"endpoint", "max_duration_s", "verify_after_s"}
_AS_SET = tuple(f.name for f in fields(ActionRule) if f.name not in _MADE)


def channel_rules(settings: Settings) -> tuple[ChannelRule, ...]:
    """`[[channels]]` in order."""
    return tuple(
        ChannelRule(
            c.match,
            c.session,
            c.products,
            c.toolset,
            c.confirm,
            c.ask,
            round(c.daily_usd_limit * USD_MICROS),
            c.reading,
            workspace=c.workspace,
            backends=ChosenBackends(**dict(c.backends)),
        )
        for c in settings.channels
    )


def turn_config(
    settings: Settings,
    channels: Sequence[ChannelRule],
    actions: Sequence[str],
    tenant_of: TenantOf = single_tenant,
) -> TurnConfig:
    """The settings of every turn. `actions` are the lines that the model reads."""
    llm = settings.llm
    return TurnConfig(
        channels=channels,
        max_tool_rounds=llm.max_tool_depth,
        max_tokens=max((s.max_tokens for s in llm.providers.values()), default=4096),
        actions=actions,
        session_idle_ttl=llm.session_idle_ttl,
        connections=connection_rules(settings),
        first_look=llm.first_look,
        refuses_shared=settings.slack.external_channels == "refuse",
        tenant_of=tenant_of,
    )


def connection_rules(settings: Settings) -> tuple[ConnectionRule, ...]:
    """`[platform.connections.NAME]`; tokens stay behind as ids."""
    return tuple(
        ConnectionRule(f"{PLATFORM_CONNECTIONS}{name}", one.users, one.workspace)
        for name, one in settings.platform.connections.items()
    )


def tool_policy(settings: Settings, own_sessions: Mapping[str, tuple[str, ...]]) -> ToolPolicy:
    """`[policy]` over the built-in toolsets; the operator's own tools, by id, in their sessions.

    Raises ConfigurationError for a channel's toolset or a role that does not exist.
    """
    investigate = (*TOOLSETS["investigate"], *own_sessions)
    built_in = ToolPolicy(
        toolsets={**TOOLSETS, "investigate": investigate},
        sessions=own_sessions,
        granted_connections=frozenset(one.id for one in connection_rules(settings)),
    )
    return configured_policy(settings, built_in)


def configured_policy(settings: Settings, built_in: ToolPolicy) -> ToolPolicy:
    """That policy under `[policy]`.

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


def tool_timeouts(settings: Settings) -> Mapping[str, float]:
    """`[llm.tools.NAME] timeout`, in seconds; a proposal also waits for its target to be read."""
    reading_s = max((a.read_timeout.total_seconds() for a in settings.actions), default=0.0)
    timeouts = {PROPOSE_TOOL: LOOKUP.default_s + reading_s}
    for name, tool in settings.llm.tools.items():
        if tool.timeout is not None:
            timeouts[name.removeprefix("core__")] = tool.timeout.total_seconds()
    return timeouts


def budget_limits(settings: Settings) -> BudgetLimits:
    """`[llm.budget]`, in micro-dollars."""
    budget = settings.llm.budget
    return BudgetLimits(
        daily_usd_micros=round(budget.daily_usd_limit * USD_MICROS),
        alert_at_pct=budget.alert_at_pct,
        user_hourly_questions=budget.per_user_hourly_limit,
        session_tokens=budget.per_session_token_cap,
    )


def alert_rules(settings: Settings) -> tuple[AlertRule, ...]:
    """`[[alerts]]` in order."""
    return tuple(
        AlertRule(
            name=rule.name,
            channel=ChannelId(rule.channel),
            match=_label_tests(rule),
            sources=rule.sources,
            product=rule.product,
            question=rule.question,
            join_s=rule.join_within.total_seconds(),
            rejoin_s=rule.rejoin_within.total_seconds(),
        )
        for rule in settings.alerts
    )


def _label_tests(rule: AlertSettings) -> dict[str, Matches]:
    tests = {name: is_exactly(value) for name, value in rule.match.items()}
    for name, pattern in rule.match_re.items():
        tests[name] = both(tests[name], fits(pattern)) if name in tests else fits(pattern)
    return tests


def alert_limits(settings: Settings) -> AlertLimits:
    """`[policy.alerts]`, in micro-dollars."""
    limits = settings.policy.alerts
    return AlertLimits(
        limits.threads_per_hour,
        limits.investigations_per_hour,
        round(limits.daily_usd_limit * USD_MICROS),
    )


def action_lines(actions: ActionCatalog) -> tuple[str, ...]:
    return tuple(
        f"{a.rule.name}: {a.rule.description} ({', '.join(a.rule.products)})" for a in actions.all()
    )


def action_rules(settings: Settings) -> tuple[ActionRule, ...]:
    """`[[actions]]`; tokens stay behind as ids."""
    return tuple(_action_rule(action) for action in settings.actions)


def _action_rule(action: ActionSettings) -> ActionRule:
    return ActionRule(
        endpoint=Endpoint(
            url=action.endpoint.url,
            credential_id=action.name if action.endpoint.token.get_secret_value() else "",
            status_url=action.status_url,
            timeout_s=action.endpoint.timeout.total_seconds(),
            kind=ExecutorKind(action.endpoint.kind),
            ref=action.endpoint.ref,
            reads=Reads(
                credential_id=action.name if action.read_token.get_secret_value() else "",
                count_url=action.count_url,
                fingerprint_url=action.fingerprint_url,
                fingerprint_fields=action.fingerprint_fields,
                timeout_s=action.read_timeout.total_seconds(),
            ),
        ),
        max_duration_s=action.max_duration.total_seconds(),
        verify_after_s=action.verify_after.total_seconds(),
        **{name: getattr(action, name) for name in _AS_SET},
    )


def freeze_windows(settings: Settings) -> tuple[FreezeWindow, ...]:
    """`[[freeze.windows]]`."""
    return tuple(
        FreezeWindow(w.begins, w.until, w.reason, w.actions, w.products)
        for w in settings.freeze.windows
    )


def freeze_marker(settings: Settings) -> Path | None:
    """`[freeze] marker`, by default beside the SQLite file."""
    if settings.freeze.marker:
        return Path(settings.freeze.marker)
    file = sqlite_file(settings)
    return Path(f"{file}.freeze") if file else None


def sqlite_file(settings: Settings) -> Path | None:
    """The database's file; None on PostgreSQL."""
    url = sa.make_url(settings.database.url.get_secret_value())
    embedded = url.drivername.startswith("sqlite") and url.database
    return Path(str(url.database)) if embedded else None


def order_tokens(settings: Settings) -> Mapping[str, SecretStr]:
    """Actions' tokens that orders are sent with."""
    return {a.name: a.endpoint.token for a in settings.actions}


def reading_tokens(settings: Settings) -> Mapping[str, SecretStr]:
    """Actions' tokens that their targets are read with before anybody confirmed."""
    return {a.name: a.read_token for a in settings.actions}


def revealed(tokens: Mapping[str, SecretStr]) -> Callable[[str], str]:
    """An action's token, revealed when it is used."""
    return lambda name: tokens[name].get_secret_value()


def audit_keys(settings: Settings) -> AuditKeys:
    """`[audit] key`, `key_id` and `old_keys`; without a key only what proves no authorship."""
    audit = settings.audit
    known = {name: key.get_secret_value().encode() for name, key in audit.old_keys.items()}
    current = audit.key.get_secret_value().encode()
    if not current:
        return AuditKeys(known=known)
    return AuditKeys(audit.key_id, {**known, audit.key_id: current})


def slack_access(settings: Settings) -> SlackAccess:
    """`[slack]` with its secrets revealed, for the check at start."""
    slack = settings.slack
    return SlackAccess(
        mode=slack.mode,
        api_base_url=slack.api_base_url,
        bot_token=slack.bot_token.get_secret_value(),
        app_token=slack.app_token.get_secret_value(),
        signing_secret=slack.signing_secret.get_secret_value(),
        why_empty={each.key: each.as_words() for each in settings.unset},
    )


def engine_database(url: str) -> str:
    """The same database under the driver that the workflow engine uses."""
    parsed = synchronous(url)
    if parsed.drivername != POSTGRESQL or is_behind_pgbouncer(url):
        return parsed.render_as_string(hide_password=False)
    option = f"-c idle_in_transaction_session_timeout={IDLE_IN_TRANSACTION_S * 1000:.0f}"
    named = parsed.update_query_dict({"options": option})
    return named.render_as_string(hide_password=False)


def alert_wires(settings: Settings) -> tuple[AlertWire, ...]:
    """The alert senders with a secret in `[http]`."""
    return tuple(_wires(settings))


def _wires(settings: Settings) -> Iterator[AlertWire]:
    http = settings.http
    if token := http.alertmanager_token.get_secret_value():
        from bot.alerts.alertmanager import ALERTMANAGER, GroupWire

        yield GroupWire(ALERTMANAGER, token)
    if token := http.grafana_token.get_secret_value():
        from bot.alerts.alertmanager import GRAFANA, GroupWire

        yield GroupWire(GRAFANA, token)
    if secret := http.pagerduty_secret.get_secret_value():
        from bot.alerts.pagerduty import PagerDutyWire

        yield PagerDutyWire(secret)
    if token := http.cloudevents_token.get_secret_value():
        from bot.alerts.cloudevents import CloudEventsWire

        yield CloudEventsWire(token)
