"""The one thing the layers ask of redaction. The rules live in `bot.privacy`."""

import json
from typing import Final, NewType, Protocol

import orjson
from pydantic import JsonValue

# The beginning of a masked value, everywhere.
MASK_PREFIX: Final = "[redacted:"
_BYTE_ORDER_MARK: Final = "\ufeff"


# Text that went through a redactor once, at the border where it came in. Who takes this and not `str`
# need not redact it again; only a `Redactor` makes it, and who writes a constant without a secret.
Redacted = NewType("Redacted", str)


class RedactionFailed(Exception):
    """Redaction could not be completed; nothing of the text may leave."""


class Redactor(Protocol):
    """Masks secrets and personal data. Idempotent."""

    def redact(self, text: str) -> Redacted:
        """The text that may leave. Raises RedactionFailed."""
        ...

    def redact_value(self, value: JsonValue) -> JsonValue:
        """The value with its texts redacted, and the values of secret fields masked.

        Raises RedactionFailed.
        """
        ...

    @property
    def learned(self) -> int:
        """A new number once earlier text may need masking, because of a secret learned since."""
        ...


def redacted_json(text: str, redactor: Redactor) -> str:
    """JSON text, also by line, with its values redacted; other text redacted as a whole.

    Raises RedactionFailed.

    A rule that reads escaped text takes the `n` of `\\n` for a part of what follows, and leaves a
    backslash that ends the JSON. JSON that is nested too deep to walk is redacted as text all the same.
    """
    if text.startswith(_BYTE_ORDER_MARK):
        rest = text.lstrip(_BYTE_ORDER_MARK)
        return text[: len(text) - len(rest)] + redacted_json(rest, redactor)
    if text.lstrip(" \t\r\n")[:1] not in ("{", "[", '"'):
        return redactor.redact(text)
    try:
        value = orjson.loads(text)
        safe = redactor.redact_value(value)
        is_same = safe == value and (
            orjson.dumps(value).decode() == text or not _hides_values(text)
        )
        return text if is_same else orjson.dumps(safe).decode()
    except orjson.JSONDecodeError:
        return str(redactor.redact_value(text))  # JSON by line, and what only Python takes for JSON
    except (RecursionError, RedactionFailed, TypeError):
        return redactor.redact(text)


def _hides_values(text: str) -> bool:
    """Whether an object has a key twice: only the last value is read, and the text holds both."""
    try:
        json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return True
    return False


def _once(pairs: list[tuple[str, object]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key is there twice")
