"""A clock that is frozen until it is set."""

from datetime import datetime


class SetClock:
    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at
