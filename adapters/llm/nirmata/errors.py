"""Nirmata's errors: words under `error`, `message` or `detail`; the status decides the rest."""

from adapters.llm.failures import VendorError, error_reader, is_overflow
from adapters.llm.messages import ErrorKind
from adapters.llm.wire_json import as_object


def error_of(answer: object) -> VendorError:
    """One error: a text, or an object with words in one of the usual places."""
    words = _words(answer)
    throttled = ErrorKind.RATE_LIMITED if "throttl" in words.lower() else None
    return VendorError("", words, ErrorKind.CONTEXT_OVERFLOW if is_overflow(words) else throttled)


def _words(value: object) -> str:
    if isinstance(value, str):
        return value
    fields = as_object(value)
    found = (fields.get(name) for name in ("error", "message", "detail", "data"))
    return next((words for words in map(_words, filter(None, found)) if words), "")


def lacks_tools(message: str) -> bool:
    """Whether an error says that tools are not supported."""
    words = message.lower()
    return "tool" in words and "support" in words


read_error = error_reader(error_of)
