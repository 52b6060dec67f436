"""The one thing the layers ask of redaction. The rules live in `bot.chat.privacy`."""

from typing import Final, Protocol

# How a masked value begins, wherever it is met again.
MASK_PREFIX: Final = "[redacted:"


class RedactionFailed(Exception):
    """Redaction could not be completed; nothing of the text may leave."""


class Redactor(Protocol):
    """Masks secrets and personal data in text. Idempotent; valid JSON stays valid JSON."""

    def redact(self, text: str) -> str:
        """The text that may leave. Raises RedactionFailed."""
        ...
