"""Encode a request as the body of POST /v1/chat/completions, with the fields that its model takes."""

import hashlib
import re
from collections.abc import Mapping
from typing import Final

from adapters.llm.chat_completions import chat_messages, chat_tool
from adapters.llm.messages import CompleteRequest
from adapters.llm.transcript import turns
from adapters.llm.wire_json import as_text, dump

_GPT: Final = re.compile(r"gpt-(\d+)(?:\.(\d+))?(?![\d.]*o)")
_REASONS_BY_DEFAULT_SINCE: Final = (5, 5)


PROVIDER: Final = "openai"
_KEY_CHARS: Final = 32


def _version(model: str) -> tuple[int, int] | None:
    found = _GPT.match(model.rsplit("/", 1)[-1])
    return (int(found[1]), int(found[2] or 0)) if found else None


def is_reasoning(model: str) -> bool:
    """Whether it is a reasoning model: those refuse `max_tokens`, sampling parameters and `stop`."""
    name = model.rsplit("/", 1)[-1]
    version = _version(model)
    return (version is not None and version >= (5, 0)) or re.match(r"o\d", name) is not None


def must_not_reason_with_tools(model: str) -> bool:
    """Whether chat/completions refuses tools unless `reasoning_effort` is "none".

    GPT-5.5 and later reason by default and then answer 400 "Function tools with reasoning_effort
    are not supported ... in /v1/chat/completions".
    """
    version = _version(model)
    return version is not None and version >= _REASONS_BY_DEFAULT_SINCE


def encode(
    request: CompleteRequest,
    model: str,
    max_tokens: int,
    extra: Mapping[str, object],
    *,
    is_vendors_own: bool,
) -> bytes:
    """The request body; equal requests give equal bytes.

    `is_vendors_own` selects the newer `max_completion_tokens`, which all of OpenAI's models accept
    and many compatible servers do not.
    """
    reasoning = is_reasoning(model)
    newer = reasoning or is_vendors_own
    body: dict[str, object] = {
        "model": model,
        "messages": chat_messages(request.system, turns(request.messages)),
        "max_completion_tokens" if newer else "max_tokens": max_tokens,
        "stream": True,
    }
    if extra.get("stream_options") is not False:
        body["stream_options"] = {"include_usage": True}
    key = cache_key(request)
    if key and (is_vendors_own or extra.get("prompt_cache_key") is True):
        body["prompt_cache_key"] = key
    if request.tools:
        body["tools"] = [chat_tool(tool) for tool in request.tools]
        if request.require_tool:
            body["tool_choice"] = "required"
    effort = as_text(extra.get("effort"))
    if request.tools and must_not_reason_with_tools(model):
        effort = "none"
    if effort and (reasoning or not is_vendors_own):
        body["reasoning_effort"] = effort
    if not reasoning and request.temperature is not None:
        body["temperature"] = request.temperature
    if not reasoning and request.stop:
        body["stop"] = list(request.stop[:4])  # the API takes at most 4
    return dump(body)


def cache_key(request: CompleteRequest) -> str:
    """The cache key of a thread: OpenAI routes requests with one key to their cached prefix.

    A digest, because the session's id names the place; empty without a session.
    """
    session = request.meta.session_id
    return hashlib.sha256(session.encode()).hexdigest()[:_KEY_CHARS] if session else ""
