"""The ids of a platform's connections."""

from typing import Final

PREFIX: Final = "platform:"
