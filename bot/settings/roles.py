"""`[roles.NAME]`: who holds a role."""

import re
from datetime import timedelta
from typing import Final, Literal, Self

from pydantic import Field, SecretStr, model_validator

from adapters.on_call.path import steps
from bot.settings.section import Duration, Section, Token
from bot.settings.slack_ids import GroupId, PersonId

LONGEST: Final = timedelta(seconds=2)  # a click is judged within three, accounts included
_SCHEDULE: Final = re.compile(r"[A-Z0-9]{2,32}")


class OnCallSettings(Section):
    """`[roles.NAME.oncall]`: who is on call holds the role. Slack gives a click three seconds.

    `schedules` are PagerDuty's; `path` leads to e-mail addresses or Slack ids in a JSON answer.
    """

    kind: Literal["pagerduty", "json"]
    url: str = Field(pattern=r"^https?://[^/?#\s]")
    token: Token = SecretStr("")
    schedules: tuple[str, ...] = ()
    path: str = ""
    timeout: Duration = Field(default=timedelta(seconds=1.5), gt=timedelta(0), le=LONGEST)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.kind == "pagerduty" and not all(map(_SCHEDULE.fullmatch, self.schedules or ("",))):
            raise ValueError("kind pagerduty needs schedules, such as PI7DH85")
        if self.kind == "json":
            steps(self.path)
        return self


class RoleSettings(Section):
    """`[roles.NAME]`: Slack user groups, users, and who is on call."""

    usergroups: tuple[GroupId, ...] = ()
    users: tuple[PersonId, ...] = ()
    oncall: OnCallSettings | None = None
