"""A clock that stands still until it is set."""

from datetime import datetime


class SetClock:
    """`now` is whatever was set last."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at
