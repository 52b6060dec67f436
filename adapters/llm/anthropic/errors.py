"""Anthropic's error names, from an HTTP answer or from within a stream."""

from collections.abc import Mapping
from typing import Final

from adapters.llm.failures import VendorError, error_reader, is_overflow
from adapters.llm.messages import ErrorKind
from adapters.llm.wire_json import as_object, as_text

_KINDS: Final[Mapping[str, ErrorKind]] = {
    "api_error": ErrorKind.OVERLOADED,
    "authentication_error": ErrorKind.AUTH,
    "billing_error": ErrorKind.QUOTA,
    "invalid_request_error": ErrorKind.BAD_REQUEST,
    "not_found_error": ErrorKind.BAD_REQUEST,
    "overloaded_error": ErrorKind.OVERLOADED,
    "permission_error": ErrorKind.AUTH,
    "rate_limit_error": ErrorKind.RATE_LIMITED,
    "request_too_large": ErrorKind.CONTEXT_OVERFLOW,
    "timeout_error": ErrorKind.TIMEOUT,
}
# A rate limit that waiting does not lift.
_SPENT: Final = "enforced_spend_limit_reached"


def error_of(error: object) -> VendorError:
    """One error object: `{type, message, details?}`; a compatible server may send a text."""
    fields = as_object(error)
    name, words = as_text(fields.get("type")), as_text(fields.get("message")) or as_text(error)
    kind = _KINDS.get(name)
    if as_object(fields.get("details")).get("error_code") == _SPENT:
        kind = ErrorKind.QUOTA
    elif kind in {ErrorKind.BAD_REQUEST, None} and is_overflow(words):
        kind = ErrorKind.CONTEXT_OVERFLOW
    elif "credit balance" in words:  # a 400 invalid_request_error in practice
        kind = ErrorKind.QUOTA
    return VendorError(name, words, kind)


read_error = error_reader(lambda answer: error_of(answer.get("error")))
