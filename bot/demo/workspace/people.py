"""The roster of a workspace: people, bots, channels, user groups. No messages."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from bot.demo.workspace.errors import CannotDoThat
from bot.demo.workspace.json_access import CONSTANTS, JsonObject

ChannelKind = Literal["channel", "group", "im"]


@dataclass(frozen=True, slots=True)
class User:
    """One account. `team` differs from the workspace's for a Slack Connect stranger."""

    id: str
    name: str
    real_name: str
    team: str
    title: str = ""
    is_bot: bool = False
    is_admin: bool = False
    is_restricted: bool = False
    is_ultra_restricted: bool = False
    is_stranger: bool = False
    deleted: bool = False
    bot_id: str = ""

    def as_slack(self) -> JsonObject:
        first, _, last = self.real_name.partition(" ")
        profile: JsonObject = CONSTANTS["profile"] | {
            "title": self.title,
            "real_name": self.real_name,
            "real_name_normalized": self.real_name,
            "display_name": self.name,
            "display_name_normalized": self.name,
            "first_name": first,
            "last_name": last,
            "avatar_hash": "g" + self.id.lower(),
            "team": self.team,
        }
        if self.is_bot:
            profile["bot_id"] = self.bot_id
        elif not self.is_stranger:
            profile["email"] = f"{self.name}@example.com"
        user: JsonObject = CONSTANTS["user"] | {
            "id": self.id,
            "team_id": self.team,
            "name": self.name,
            "deleted": self.deleted,
            "profile": profile,
            "is_bot": self.is_bot,
        }
        if self.is_stranger:
            user["is_stranger"] = True
        if self.deleted:
            return user
        return (
            user
            | CONSTANTS["active_user"]
            | {
                "real_name": self.real_name,
                "is_admin": self.is_admin,
                "is_restricted": self.is_restricted or self.is_ultra_restricted,
                "is_ultra_restricted": self.is_ultra_restricted,
                "is_email_confirmed": not self.is_bot,
            }
        )


@dataclass(frozen=True, slots=True)
class Channel:
    """A public channel, a private one (`group`), or a direct message (`im`)."""

    id: str
    name: str
    members: frozenset[str]
    kind: ChannelKind = "channel"
    topic: str = ""
    suggestion: str = ""  # what the page's composer offers to ask; Slack has no such thing
    is_archived: bool = False
    is_ext_shared: bool = False

    def as_slack(self, team: str, bot_user: str) -> JsonObject:
        shared: JsonObject = CONSTANTS["conversation"] | {
            "id": self.id,
            "is_archived": self.is_archived,
            "is_im": self.kind == "im",
            "is_private": self.kind != "channel",
            "context_team_id": team,
        }
        if self.kind == "im":
            person = next(iter(self.members - {bot_user}), "")
            return shared | CONSTANTS["direct"] | {"user": person}
        return (
            shared
            | CONSTANTS["channel"]
            | {
                "name": self.name,
                "name_normalized": self.name,
                "is_channel": self.kind == "channel",
                "is_group": self.kind == "group",
                "is_shared": self.is_ext_shared,
                "is_ext_shared": self.is_ext_shared,
                "is_member": bot_user in self.members,
                "topic": {"value": self.topic, "creator": "", "last_set": 0},
            }
        )


@dataclass(frozen=True, slots=True)
class UserGroup:
    id: str
    handle: str
    name: str
    users: tuple[str, ...] = ()
    disabled: bool = False

    def as_slack(self, team: str, *, with_users: bool, with_count: bool) -> JsonObject:
        group: JsonObject = CONSTANTS["usergroup"] | {
            "id": self.id,
            "team_id": team,
            "name": self.name,
            "handle": self.handle,
            "date_delete": 1_700_000_000 if self.disabled else 0,
        }
        if with_users:
            group["users"] = list(self.users)
        if with_count:
            group["user_count"] = len(self.users)
        return group


@dataclass(slots=True)
class Roster:
    users: dict[str, User] = field(default_factory=dict)
    channels: dict[str, Channel] = field(default_factory=dict)
    groups: dict[str, UserGroup] = field(default_factory=dict)

    @classmethod
    def of(
        cls, users: Iterable[User], channels: Iterable[Channel], groups: Iterable[UserGroup] = ()
    ) -> "Roster":
        return cls(
            {user.id: user for user in users},
            {channel.id: channel for channel in channels},
            {group.id: group for group in groups},
        )

    def user(self, user_id: str) -> User:
        """Raises CannotDoThat when there is no such person."""
        try:
            return self.users[user_id]
        except KeyError:
            raise CannotDoThat(f"there is no user {user_id}") from None

    def channel(self, channel_id: str) -> Channel:
        """Raises CannotDoThat when there is no such channel."""
        try:
            return self.channels[channel_id]
        except KeyError:
            raise CannotDoThat(f"there is no channel {channel_id}") from None

    def archive(self, channel_id: str, *, archived: bool = True) -> Channel:
        changed = replace(self.channel(channel_id), is_archived=archived)
        self.channels[channel_id] = changed
        return changed

    def set_members(self, channel_id: str, members: Iterable[str]) -> Channel:
        changed = replace(self.channel(channel_id), members=frozenset(members))
        self.channels[channel_id] = changed
        return changed

    def deactivate(self, user_id: str) -> None:
        self.users[user_id] = replace(self.user(user_id), deleted=True)
