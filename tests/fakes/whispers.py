"""A chat surface of which only private messages are used."""

from bot.domain.ids import MessageTs, Place, UserId
from bot.domain.proposal import Proposal
from bot.domain.session import Ask
from bot.ports import AnswerStream


class Whispers:
    """Remembers what was said to whom."""

    def __init__(self) -> None:
        self.said: list[tuple[Place, UserId, str]] = []

    @property
    def texts(self) -> list[str]:
        """The words alone."""
        return [text for _, _, text in self.said]

    async def whisper(self, place: Place, user: UserId, text: str) -> None:
        self.said.append((place, user, text))

    async def open_answer(self, ask: Ask) -> MessageTs:
        raise NotImplementedError

    def stream(self, ask: Ask, ts: MessageTs) -> AnswerStream:
        raise NotImplementedError

    async def show_card(self, proposal: Proposal) -> MessageTs:
        raise NotImplementedError

    async def say(self, place: Place, text: str, key: str) -> MessageTs:
        raise NotImplementedError
