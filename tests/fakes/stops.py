"""Stop requests, remembered."""

from bot.domain.ids import TurnId, UserId


class RecordingStops:
    """Every turn in `running` can be stopped."""

    def __init__(self) -> None:
        self.running: set[TurnId] = set()
        self.requested: list[tuple[TurnId, UserId]] = []

    async def request(self, turn: TurnId, by: UserId) -> bool:
        self.requested.append((turn, by))
        return turn in self.running
