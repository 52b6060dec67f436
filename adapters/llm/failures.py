"""Map a backend's error answer to an error chunk, for all vendors.

Each vendor's package maps its own error names; here are statuses, waiting times and the removal of
secrets.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import httpx

from adapters.errors import (
    AdapterError,
    BadAnswer,
    BadRequest,
    NotFound,
    Overloaded,
    RateLimited,
    Refused,
    TimedOut,
    Unreachable,
)
from adapters.fault import fault_of
from adapters.http.errors import retry_after_s
from adapters.llm.messages import ErrorChunk, ErrorKind
from adapters.llm.wire_json import as_object, parse

_MAX_WORDS: Final = 300

# OpenAI writes the wait into the text where it sends no header.
_TRY_AGAIN: Final = re.compile(r"try again in ([0-9]+(?:\.[0-9]+)?)(ms|s|m)\b")
_UNIT_S: Final[Mapping[str, float]] = {"ms": 0.001, "s": 1.0, "m": 60.0}

# The vendors' messages for a prompt that does not fit, as recorded: Anthropic; Bedrock (Claude,
# Nova, Titan); OpenAI; llama.cpp; Ollama; vLLM; Gemini; xAI; Cohere.
_OVERFLOW: Final = re.compile(
    r"prompt is too long|input is too long|context window|context_length|maximum context length"
    r"|exceeds the (?:available )?context|longer than the context length"
    r"|input tokens exceed|too many input tokens|number of input tokens exceeds"
    r"|input token count .{0,40}exceeds|maximum prompt length"
    r"|number of tokens in the prompt cannot exceed",
    re.IGNORECASE,
)
# Keys that vendors quote back, whole or masked.
_KEY: Final = re.compile(r"\b(?:sk|pk|key|rk)-[A-Za-z0-9_*.\-]{4,}")

_KIND_OF_ERROR: Final[Mapping[type[AdapterError], ErrorKind]] = {
    AdapterError: ErrorKind.PROTOCOL,
    BadAnswer: ErrorKind.PROTOCOL,
    BadRequest: ErrorKind.BAD_REQUEST,
    NotFound: ErrorKind.BAD_REQUEST,
    Overloaded: ErrorKind.OVERLOADED,
    RateLimited: ErrorKind.RATE_LIMITED,
    Refused: ErrorKind.AUTH,
    TimedOut: ErrorKind.TIMEOUT,
    Unreachable: ErrorKind.UNREACHABLE,
}


@dataclass(frozen=True, slots=True)
class VendorError:
    """A vendor's error: its name, its message, and our kind if the body decides it."""

    name: str
    words: str
    kind: ErrorKind | None


ReadError = Callable[[int, httpx.Headers, bytes], VendorError]


def error_reader(error_of: Callable[[Mapping[str, object]], VendorError]) -> ReadError:
    """A reader of HTTP error bodies; a body of another shape decides nothing."""

    def read_error(_status: int, _headers: httpx.Headers, body: bytes) -> VendorError:
        try:
            return error_of(as_object(parse(body)))
        except ValueError:
            return VendorError("", "", None)

    return read_error


def is_overflow(words: str) -> bool:
    """Whether a vendor's message means that the prompt does not fit the context window."""
    return _OVERFLOW.search(words) is not None


def wait_in_words(words: str) -> float | None:
    """The wait that a text asks for ("Please try again in 4s"), in seconds."""
    found = _TRY_AGAIN.search(words)
    return float(found[1]) * _UNIT_S[found[2]] if found else None


def kind_of_status(status: int) -> ErrorKind:
    """The kind for a status, when the body decides nothing."""
    match status:
        case 401 | 403:
            return ErrorKind.AUTH
        case 402:
            return ErrorKind.QUOTA
        case 408 | 504:
            return ErrorKind.TIMEOUT
        case 413:
            return ErrorKind.CONTEXT_OVERFLOW
        case 429:
            return ErrorKind.RATE_LIMITED
        case _ if status >= 500:
            return ErrorKind.OVERLOADED
        case _ if status >= 400:
            return ErrorKind.BAD_REQUEST
        case _:
            return ErrorKind.PROTOCOL


def safe_words(kind: ErrorKind, error: VendorError) -> str:
    """The vendor's name and message on one short line, without keys.

    Of a refused key only the name is kept: vendors quote the key in their message.
    """
    words = "" if kind is ErrorKind.AUTH else _KEY.sub("[key]", " ".join(error.words.split()))
    said = ": ".join(part for part in (error.name, words) if part)
    return said if len(said) <= _MAX_WORDS else said[: _MAX_WORDS - 1] + "…"


def from_answer(
    provider: str, status: int, headers: httpx.Headers, error: VendorError
) -> ErrorChunk:
    kind = error.kind or kind_of_status(status)
    words = safe_words(kind, error)
    wait = retry_after_s(headers)
    retry = headers.get("x-should-retry", "").lower()
    return ErrorChunk(
        kind,
        f"{provider} answered {status}" + (f": {words}" if words else ""),
        wait if wait is not None else wait_in_words(error.words),
        status,
        {"true": True, "false": False}.get(retry),
    )


def from_adapter_error(error: AdapterError) -> ErrorChunk:
    """The chunk for an exchange without a whole answer.

    A refusal without a status comes from our own egress guard: this provider may not be used here.
    """
    kind = _KIND_OF_ERROR[type(error)]
    if isinstance(error, Refused) and error.status is None:
        kind = ErrorKind.UNAVAILABLE
    return ErrorChunk(kind, error.message, error.retry_after_s, error.status, fault=fault_of(error))
