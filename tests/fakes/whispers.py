"""`bot.ports.platform.PrivateSurface`, in memory."""

from collections.abc import Sequence

from bot.domain.chart import Chart
from bot.domain.ids import Place, UserId
from bot.ports.platform import PlatformTraits
from tests.fakes.card_wall import TRAITS


class Whispers:
    """Remembers private messages and their readers."""

    def __init__(self) -> None:
        self.said: list[tuple[Place, UserId, str]] = []
        self.charts: list[Chart] = []

    @property
    def texts(self) -> list[str]:
        """The words alone."""
        return [text for _, _, text in self.said]

    @property
    def traits(self) -> PlatformTraits:
        return TRAITS

    async def whisper(
        self, place: Place, user: UserId, text: str, charts: Sequence[Chart] = ()
    ) -> None:
        self.said.append((place, user, text))
        self.charts += charts
