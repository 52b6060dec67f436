"""Recent tool calls: a cache of results for the same person, and a circuit breaker per tool.

The cache holds results as the model received them, redacted and cut; never failures or proposals.
Three timeouts or refused connections in a row open a tool's circuit for `OPEN_S`; then one call tries.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import orjson
from cachetools import TLRUCache
from pydantic import BaseModel

from tools.capabilities import CallContext
from tools.contract import Effect, ToolContract
from tools.errors import ToolErrorCode
from tools.failure import duration_words

TTL_S = 30.0
MAX_ENTRIES = 256  # of at most 64 KiB each
NOTE_BYTES = 40  # what `with_age` adds at most

FAILURES = 3
OPEN_S = 30.0
_NO_ANSWER = frozenset({ToolErrorCode.TOOL_TIMEOUT, ToolErrorCode.UNAVAILABLE})


@dataclass(frozen=True, slots=True)
class CachedCall:
    """A result as the model received it. `at_s`: when its call began, by a monotonic clock."""

    content: str
    summary: str
    cut: bool
    at_s: float


ResultCache: TypeAlias = TLRUCache[bytes, CachedCall]


def result_cache(timer: Callable[[], float], max_entries: int = MAX_ENTRIES) -> ResultCache:
    """Results for `TTL_S` after their call began; the least recently used make room."""
    return TLRUCache(max_entries, lambda _key, kept, _now: kept.at_s + TTL_S, timer)


def key_of(contract: ToolContract, arguments: BaseModel, context: CallContext) -> bytes | None:
    """The person, the call, its scope and connections. None: the call is never cached."""
    if contract.live or contract.effect is not Effect.READ_ONLY:
        return None
    asked = [
        contract.id, arguments.model_dump(mode="json"), context.team, context.actor,
        context.session_id, context.purpose, context.products, context.reading,
        sorted(context.connection_ids),
    ]  # fmt: skip
    return hashlib.sha256(orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)).digest()


def with_age(kept: CachedCall, now_s: float) -> str:
    """The result with a note that it comes from the cache, and how old it is."""
    age = duration_words(now_s - kept.at_s)
    comma = "" if kept.content == "{}" else ","
    return f'{kept.content[:-1]}{comma}"from_cache":"read {age} ago"}}'


@dataclass(slots=True)
class _Row:
    failures: int = 0
    closed_again_s: float = 0.0


class Breaker:
    """Circuit breakers of this process, by tool. `clock` is monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._rows: dict[str, _Row] = {}

    def refusal(self, tool_id: str) -> str | None:
        """Why the tool is not called now, or None. After a pause only the first caller gets None."""
        row = self._rows.get(tool_id)
        if row is None or row.failures < FAILURES:
            return None
        wait_s = row.closed_again_s - self._clock()
        if wait_s <= 0:
            row.closed_again_s = self._clock() + OPEN_S
            return None
        return (
            f"did not answer {row.failures} times in a row; not asked for another {wait_s:.0f} s, "
            "go on with other tools"
        )

    def untried(self, tool_id: str) -> None:
        """A call ended before it reached the backend: the next one may try."""
        row = self._rows.get(tool_id)
        if row is not None:
            row.closed_again_s = min(row.closed_again_s, self._clock())

    def ended(self, tool_id: str, code: ToolErrorCode | None) -> None:
        """Record how a call ended; None is success. Any answer closes the circuit, a refusal too."""
        if code not in _NO_ANSWER:
            self._rows.pop(tool_id, None)
            return
        row = self._rows.setdefault(tool_id, _Row())
        row.failures += 1
        row.closed_again_s = self._clock() + OPEN_S
