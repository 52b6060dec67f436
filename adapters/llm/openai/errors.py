"""OpenAI's error names and those of compatible servers, from an answer or from within a stream."""

from collections.abc import Mapping
from typing import Final

import httpx

from adapters.llm.failures import VendorError, is_overflow, kind_of_status
from adapters.llm.messages import ErrorKind
from adapters.llm.wire_json import as_int, as_object, as_text, parse

# By `code`, then by `type`.
_KINDS: Final[Mapping[str, ErrorKind]] = {
    "billing_hard_limit_reached": ErrorKind.QUOTA,
    "content_filter": ErrorKind.REFUSED,
    "content_policy_violation": ErrorKind.REFUSED,
    "context_length_exceeded": ErrorKind.CONTEXT_OVERFLOW,
    "exceed_context_size_error": ErrorKind.CONTEXT_OVERFLOW,
    "insufficient_quota": ErrorKind.QUOTA,
    "invalid_api_key": ErrorKind.AUTH,
    "invalid_request_error": ErrorKind.BAD_REQUEST,
    "model_not_found": ErrorKind.BAD_REQUEST,
    "overloaded_error": ErrorKind.OVERLOADED,
    "rate_limit_exceeded": ErrorKind.RATE_LIMITED,
    "server_error": ErrorKind.OVERLOADED,
}


def read_error(status: int, headers: httpx.Headers, body: bytes) -> VendorError:
    """The error in an HTTP answer; a body of another shape decides nothing."""
    del headers
    try:
        answers = parse(body)  # Gemini's compatible endpoint sends a list of one
        answer = as_object(answers[0] if isinstance(answers, list) and answers else answers)
    except ValueError:
        return VendorError("", "", None)
    found = error_of(answer.get("error") or answer)
    if found.kind is ErrorKind.BAD_REQUEST and status in {401, 403, 429}:
        return VendorError(found.name, found.words, kind_of_status(status))
    return found


def error_of(error: object) -> VendorError:
    """One error: `{message, type, param, code}`, where `code` may be an HTTP status; or a text."""
    if isinstance(error, str):
        return _named("", error, None)
    fields = as_object(error)
    words = as_text(fields.get("message")) or as_text(fields.get("detail"))
    code, name = as_text(fields.get("code")), as_text(fields.get("type"))
    status = as_int(fields.get("code"))
    kind = _KINDS.get(code) or _KINDS.get(name)
    if kind is None and status is not None and status >= 400:
        kind = kind_of_status(status)
    return _named(code or name, words, kind)


def _named(name: str, words: str, kind: ErrorKind | None) -> VendorError:
    if kind in {ErrorKind.BAD_REQUEST, None} and is_overflow(words):
        kind = ErrorKind.CONTEXT_OVERFLOW
    return VendorError(name, words, kind)
