"""`[roles.NAME]` and `[policy]`: role members, allowed tools, limits of a turn."""

import re
from datetime import timedelta
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from adapters.on_call.port import steps
from bot.settings.access import AccessSettings
from bot.settings.alerts import AlertLimitSettings
from bot.settings.section import Duration, Section, absent_table
from bot.settings.slack_ids import ChannelNames, GroupId, PersonId
from bot.settings.workspaces import Workspace
from tools.call_limits import MAX_RESULT_BYTES, MIN_RESULT_BYTES

LONGEST: Final = timedelta(seconds=2)  # a click is judged within three, accounts included
_SCHEDULE: Final = re.compile(r"[A-Z0-9]{2,32}")


MAX_TURN_BYTES: Final = 1 << 30  # in memory, of every turn at once


class OnCallSettings(AccessSettings):
    """`[roles.NAME.oncall]`: the people on call hold the role. Slack gives a click three seconds.

    `schedules` are PagerDuty's; `path` leads to e-mail addresses or Slack ids in a JSON answer.
    """

    kind: Literal["pagerduty", "json"]
    url: str = Field(pattern=r"^https?://[^/?#\s]")
    schedules: tuple[str, ...] = ()
    path: str = ""
    timeout: Duration = Field(default=timedelta(seconds=1.5), gt=timedelta(0), le=LONGEST)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.kind == "pagerduty" and not all(map(_SCHEDULE.fullmatch, self.schedules or ("",))):
            raise ValueError("kind pagerduty needs schedules, such as PI7DH85")
        if self.kind == "pagerduty" and self.user:
            raise ValueError("kind pagerduty takes a token, not a user")
        if self.kind == "json":
            steps(self.path)
        return self


class RoleSettings(Section):
    """`[roles.NAME]`: Slack user groups, users, and the people on call, of one workspace.

    `workspace` empty is the one of `[slack] bot_token`.
    """

    workspace: Workspace = ""
    usergroups: tuple[GroupId, ...] = ()
    users: tuple[PersonId, ...] = ()
    oncall: OnCallSettings | None = None


class ToolBudgetSettings(Section):
    """`[policy.budget]`, and a toolset's `budget`, which inherits omitted keys from it."""

    calls: int = Field(default=60, ge=1, le=1000)
    same_calls: int = Field(default=2, ge=1, le=100)
    turn_bytes: int = Field(default=2 * 1024 * 1024, ge=MIN_RESULT_BYTES, le=MAX_TURN_BYTES)
    result_bytes: int = Field(default=MAX_RESULT_BYTES, ge=MIN_RESULT_BYTES, le=MAX_RESULT_BYTES)
    call_time: Duration = timedelta(minutes=5)


class ToolsetSettings(Section):
    """`[policy.toolsets.NAME]`. `tools` are globs of ids; left out, the built-in ones of that name."""

    tools: tuple[str, ...] | None = None
    budget: ToolBudgetSettings = absent_table()
    alerts: AlertLimitSettings = absent_table()


class ChannelToolSettings(Section):
    """One `[[policy.channels]]`: in channels of that name, of their toolset only these tools."""

    match: ChannelNames = Field(min_length=1)
    tools: tuple[str, ...]


class RoleToolSettings(Section):
    """`[policy.roles.NAME]`: what its holders may use. `tools` are globs of ids."""

    tools: tuple[str, ...]


class PolicySettings(Section):
    """`[policy]`. `denied` are globs of tools that are always forbidden.

    Once `roles` names any, a turn uses the tools of the asker's roles and of `"*"`, every asker.
    """

    effects: tuple[Literal["read_only"], ...] = ("read_only",)
    denied: tuple[str, ...] = ()
    budget: ToolBudgetSettings = absent_table()
    alerts: AlertLimitSettings = absent_table()
    toolsets: dict[str, ToolsetSettings] = Field(default_factory=dict)
    channels: tuple[ChannelToolSettings, ...] = ()
    roles: dict[str, RoleToolSettings] = Field(default_factory=dict)
