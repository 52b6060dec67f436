"""Slack's payloads, as far as Kortex reads them, and the identity of this installation.

Parsing only. Every model ignores unknown fields and hides its input in errors: a payload is user
text and must not reach a log.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

import structlog
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from bot.domain.ids import TeamId, UserId

_log = structlog.stdlib.get_logger(__name__)
_P = TypeVar("_P", bound=BaseModel)


def parsed(model: type[_P], body: Mapping[str, JsonValue]) -> _P | None:
    """The payload, or None for one that cannot be read: a redelivery would not help."""
    try:
        return model.model_validate(body)
    except ValidationError as error:
        where = [".".join(map(str, each["loc"])) for each in error.errors(include_input=False)]
        _log.warning("slack.payload.unreadable", model=model.__name__, fields=where)
        return None


@dataclass(frozen=True, slots=True)
class SlackIdentity:
    """What `auth.test` said at start. `app_id` "" is unknown and then not checked."""

    team: TeamId
    bot_user: UserId
    bot_id: str
    app_id: str = ""
    enterprise: str = ""
    trusted_teams: frozenset[str] = field(default=frozenset())  # may ask although external
    site: str = ""  # the workspace's address, "https://acme.slack.com"

    def is_addressee(self, installed_team: str, api_app_id: str) -> bool:
        if self.app_id and api_app_id != self.app_id:
            return False
        return installed_team == self.team

    def is_external(self, team: str) -> bool:
        """Whether someone of that workspace came in through Slack Connect."""
        return team not in self.trusted_teams and team not in {self.team, self.enterprise or None}


class _Payload(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)


class _Id(_Payload):
    id: str


class SharedFile(_Payload):
    """One of `files`. A file of another workspace has only its id."""

    id: str = ""
    name: str | None = ""
    mimetype: str | None = ""
    size: int | None = 0


def _readable(value: object) -> tuple[SharedFile, ...]:
    """A file that cannot be read must not lose the question beside it."""
    found = []
    for each in value if isinstance(value, list) else []:
        with suppress(ValidationError):
            found.append(SharedFile.model_validate(each))
    return tuple(found)


class Message(_Payload):
    type: str
    channel: str = ""
    ts: str = ""
    thread_ts: str = ""
    channel_type: str = ""
    user: str = ""
    text: str | None = ""
    subtype: str | None = None
    bot_id: str | None = None
    hidden: bool = False
    edited: dict[str, str] | None = None
    user_team: str | None = None
    source_team: str | None = None
    team: str | None = None
    files: Annotated[tuple[SharedFile, ...], BeforeValidator(_readable)] = ()


class _Authorization(_Payload):
    team_id: str | None = None


class _Envelope(_Payload):
    team_id: str | None = None
    api_app_id: str = ""
    event_id: str = ""
    authorizations: tuple[_Authorization, ...] = ()

    @property
    def installed_team(self) -> str:
        """The workspace the app is installed in; in shared channels `team_id` may be another."""
        first = self.authorizations[0].team_id if self.authorizations else None
        return first or self.team_id or ""


class MessageEnvelope(_Envelope):
    event: Message


class _StoppedSession(_Payload):
    channel: str
    thread_ts: str = ""
    user: str
    user_team: str = ""


class SessionStopped(_Envelope):
    """An `event_callback` around `agent_session_stopped`: Slack's own stop button."""

    event: _StoppedSession


class _Opened(_Payload):
    user: str
    tab: str = ""
    channel: str = ""


class HomeOpened(_Envelope):
    event: _Opened


class _Group(_Payload):
    subteam_id: str = ""
    subteam: _Id | None = None


class GroupChanged(_Envelope):
    """An `event_callback` around `subteam_members_changed` or `subteam_updated`."""

    event: _Group

    @property
    def usergroup(self) -> str:
        """The user group that changed; the two events name it in different fields."""
        return self.event.subteam_id or (self.event.subteam.id if self.event.subteam else "")


class _Renamed(_Payload):
    channel: _Id


class ChannelRenamed(_Envelope):
    event: _Renamed


class _RevokedTokens(_Payload):
    bot: tuple[str, ...] = ()  # ids of bots


class _Removed(_Payload):
    type: str
    tokens: _RevokedTokens = _RevokedTokens()

    @property
    def is_ours(self) -> bool:
        return self.type == "app_uninstalled" or bool(self.tokens.bot)


class Removed(_Envelope):
    """An `event_callback` around `app_uninstalled` or `tokens_revoked`; they come in any order."""

    event: _Removed


class _Reached(_Payload):
    channel: str
    user: str = ""


class ChannelReached(_Envelope):
    """An `event_callback` around `member_joined_channel`, `channel_unarchive`, `group_unarchive`.

    `user` is who joined, or who brought the channel back.
    """

    event: _Reached


class _Clicker(_Payload):
    id: str
    team_id: str | None = None


class Container(_Payload):
    channel_id: str = ""
    message_ts: str = ""
    thread_ts: str | None = None


class _Snapshot(_Payload):
    thread_ts: str | None = None


class _Option(_Payload):
    value: str = ""


class _Action(_Payload):
    action_id: str
    action_ts: str = ""
    value: str = ""
    selected_option: _Option | None = None

    @property
    def chosen(self) -> str:
        return self.selected_option.value if self.selected_option else self.value


class _Input(_Payload):
    value: str | None = None


class _ViewState(_Payload):
    values: dict[str, dict[str, _Input]] = {}


class View(_Payload):
    callback_id: str = ""
    private_metadata: str = ""
    state: _ViewState = _ViewState()

    def answer(self, block: str, action: str) -> str:
        """The text of one input; empty when it was left out."""
        given = self.state.values.get(block, {}).get(action)
        return (given.value if given else "") or ""


class BlockActions(_Payload):
    """A pressed button or a choice from a menu. `message` is what the client was looking at, perhaps long stale."""

    api_app_id: str = ""
    team: _Id | None = None  # null for organisation-wide installs
    user: _Clicker
    container: Container
    message: _Snapshot | None = None
    view: View | None = None  # of a press in a modal
    trigger_id: str = ""
    actions: tuple[_Action, ...] = Field(min_length=1)


class ViewSubmission(_Payload):
    api_app_id: str = ""
    trigger_id: str = ""
    team: _Id | None = None
    user: _Clicker
    view: View


class SlashCommand(_Payload):
    """A slash command; Slack sends it as a form."""

    api_app_id: str = ""
    team_id: str = ""
    user_id: str
    channel_id: str = ""
    text: str = ""
    trigger_id: str = ""
