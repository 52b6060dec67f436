"""The activity of a workspace, a row each: running answers, conversations. Values only."""

from dataclasses import dataclass
from datetime import datetime

from bot.domain.ids import MessageTs, Place, UserId


@dataclass(frozen=True, slots=True)
class RunningQuestion:
    """A question that is being answered, or waits to be. `asker` and `since` are not known of waiting ones."""

    place: Place
    ts: MessageTs
    asker: UserId | None
    since: datetime | None

    @property
    def waits(self) -> bool:
        return self.since is None


@dataclass(frozen=True, slots=True)
class RecentConversation:
    """A conversation. `asker` asked last in it."""

    place: Place
    active_at: datetime
    questions: int
    asker: UserId
