"""Ollama's errors: a text in `{"error": "..."}`, from an answer or from within a stream."""

from collections.abc import Mapping
from typing import Final

from adapters.llm.failures import VendorError, error_reader, is_overflow
from adapters.llm.messages import ErrorKind
from adapters.llm.wire_json import as_object, as_text

# Words of the server's source; without one of them the status decides.
_KINDS: Final[Mapping[str, ErrorKind]] = {
    "does not support tools": ErrorKind.BAD_REQUEST,
    "server busy": ErrorKind.OVERLOADED,
    "not found": ErrorKind.BAD_REQUEST,
    "requires more system memory": ErrorKind.OVERLOADED,
    "unauthorized": ErrorKind.AUTH,
}
_NO_TOOLS: Final = "does not support tools"


def error_of(error: object) -> VendorError:
    """One error: a text, or an object with a message."""
    words = as_text(error) or as_text(as_object(error).get("message"))
    if is_overflow(words):
        return VendorError("", words, ErrorKind.CONTEXT_OVERFLOW)
    kind = next((kind for phrase, kind in _KINDS.items() if phrase in words), None)
    return VendorError("", words, kind)


def lacks_tools(message: str) -> bool:
    """Whether an error says that the model has no tools of its own."""
    return _NO_TOOLS in message


read_error = error_reader(lambda answer: error_of(answer.get("error")))
