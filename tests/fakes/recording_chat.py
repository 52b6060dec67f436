"""`bot.ports.platform.ChatSurface`: answers and cards, remembered."""

from tests.fakes.card_wall import CardWall
from tests.fakes.recording_surface import RecordingSurface


class RecordingChat(RecordingSurface, CardWall):
    """Both at once."""

    def __init__(self) -> None:
        RecordingSurface.__init__(self)
        CardWall.__init__(self)
