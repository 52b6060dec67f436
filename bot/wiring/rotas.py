"""The operator's roles, with the rotas that hold them. No I/O."""

from collections.abc import Mapping
from typing import assert_never

from adapters.on_call.json_endpoint import JsonOnCall
from adapters.on_call.pagerduty import PagerDutyOnCall
from adapters.on_call.port import OnCall
from bot.settings.model import Settings
from bot.settings.policy import OnCallSettings
from bot.slack.roles.directory import RoleMembers


def role_members(settings: Settings) -> Mapping[str, RoleMembers]:
    """`[roles.NAME]`."""
    return {
        name: RoleMembers(role.usergroups, role.users, _rota(role.oncall) if role.oncall else None)
        for name, role in settings.roles.items()
    }


def _rota(settings: OnCallSettings) -> OnCall:
    timeout_s, token = settings.timeout.total_seconds(), settings.token.get_secret_value()
    match settings.kind:
        case "pagerduty":
            return PagerDutyOnCall(settings.url, settings.schedules, timeout_s, token)
        case "json":
            return JsonOnCall(settings.url, settings.path, timeout_s, token)
        case _:
            assert_never(settings.kind)
