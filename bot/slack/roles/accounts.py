"""What `users.info` says of somebody: one reading, for who may decide and for who may see."""

from pydantic import BaseModel, ConfigDict

from bot.ports.failures import SurfaceFailed
from bot.slack.api.calls import SlackCalls


class Account(BaseModel):
    """What we read of a person. Slack leaves flags out for some kinds of people."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", hide_input_in_errors=True, defer_build=True
    )

    id: str
    team_id: str = ""
    deleted: bool = False
    is_bot: bool = False
    is_restricted: bool = False
    is_ultra_restricted: bool = False
    is_stranger: bool = False

    @property
    def is_guest(self) -> bool:
        """Of one channel or of several."""
        return self.is_restricted or self.is_ultra_restricted

    def is_elsewhere(self, team: str) -> bool:
        """Whether Slack names another workspace as theirs."""
        return self.team_id not in {"", team}


class _Answer(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="ignore", hide_input_in_errors=True, defer_build=True
    )

    user: Account


async def account_of(api: SlackCalls, user: str) -> Account:
    """As it is now. Raises SurfaceGone, SurfaceFailed, ValidationError.

    An answer about somebody else is a failed one: nobody is judged by another's account.
    """
    found = _Answer.model_validate(await api.call("users.info", user=user)).user
    if found.id != user:
        raise SurfaceFailed("users.info told of somebody else", retryable=True)
    return found
