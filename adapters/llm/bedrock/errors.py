"""Bedrock's exceptions, from an HTTP answer or from within a stream."""

from collections.abc import Mapping
from typing import Final

import httpx

from adapters.llm.failures import VendorError, is_overflow
from adapters.llm.messages import ErrorKind
from adapters.llm.wire_json import as_object, as_text, parse

# Names as the service model has them, compared without "Exception" and in lower case: in a
# stream they begin with a small letter.
_KINDS: Final[Mapping[str, ErrorKind]] = {
    "accessdenied": ErrorKind.AUTH,
    "expiredtoken": ErrorKind.AUTH,
    "incompletesignature": ErrorKind.AUTH,
    "internalserver": ErrorKind.OVERLOADED,
    "invalidsignature": ErrorKind.AUTH,
    "modelerror": ErrorKind.OVERLOADED,
    "modelnotready": ErrorKind.OVERLOADED,
    "modelstreamerror": ErrorKind.OVERLOADED,
    "modeltimeout": ErrorKind.TIMEOUT,
    "resourcenotfound": ErrorKind.BAD_REQUEST,
    "servicequotaexceeded": ErrorKind.QUOTA,
    "serviceunavailable": ErrorKind.OVERLOADED,
    "throttling": ErrorKind.RATE_LIMITED,
    "unrecognizedclient": ErrorKind.AUTH,
    "validation": ErrorKind.BAD_REQUEST,
}


def read_error(status: int, headers: httpx.Headers, body: bytes) -> VendorError:
    """The error in an HTTP answer: named by `x-amzn-errortype: Name:http://...` or `__type`."""
    del status
    try:
        answer = as_object(parse(body))
    except ValueError:
        answer = {}
    named = headers.get("x-amzn-errortype", "") or as_text(answer.get("__type"))
    return error_of(named.split(":", 1)[0].rsplit("#", 1)[-1], answer)


def error_of(name: str, fields: Mapping[str, object]) -> VendorError:
    """One exception by name, with its `message`."""
    words = as_text(fields.get("message")) or as_text(fields.get("Message"))
    kind = _KINDS.get(name.lower().removesuffix("exception"))
    if kind in {ErrorKind.BAD_REQUEST, None} and is_overflow(words):
        kind = ErrorKind.CONTEXT_OVERFLOW
    return VendorError(name, words, kind)
