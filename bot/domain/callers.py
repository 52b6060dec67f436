"""HTTP callers: people and services, by a token of ours or of an identity provider.

Their ids begin with `@`, which no platform uses, so they match no platform user. A caller with an
account on a chat platform is that person everywhere: the same roles, the same pair of eyes.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from bot.domain.ids import API, Person, TeamId, UserId


class CallerKind(StrEnum):
    """Only people decide on proposals."""

    PERSON = "person"
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a request comes from. `key` is what its rate is counted by.

    `is_operator`: it shows the token of the configuration, which reads what admins read.
    """

    person: Person
    kind: CallerKind
    name: str
    key: str
    is_operator: bool = False


@dataclass(frozen=True, slots=True)
class KnownCaller:
    """A caller on record. `account` is a user of the chat platform, `U1` or `T1/U1`, who they are there.

    `roles` count where there is no account.
    """

    user: UserId
    kind: CallerKind
    name: str
    roles: frozenset[str] = frozenset()
    account: str = ""

    def person(self, home: TeamId) -> Person:
        """The person who asks and decides; an account without a team is of `home`."""
        if not self.account:
            return Person(API, self.user)
        team, _, user = self.account.rpartition("/")
        return Person(TeamId(team) if team else home, UserId(user))


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """The data about a token; never the token."""

    id: str
    caller: KnownCaller
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    is_live: bool


OPERATOR: Final = Caller(
    Person(API, UserId("@service/api_token")),
    CallerKind.SERVICE,
    "[http] api_token",
    "api_token",
    is_operator=True,
)


def caller_id(kind: CallerKind, name: str) -> UserId:
    return UserId(f"@{kind.value}/{name}")
