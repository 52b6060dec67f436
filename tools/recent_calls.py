"""What a moment ago tells of a call: its result for the same person, and that its backend is down.

Results are kept as a model was given them, redacted and cut already; never a failure, never what
proposes. A tool whose backend does not answer is not asked for a while: asking again would hold up
a turn. Three failures in a row, by running out of time or by not being there, open its circuit; then
one call tries.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import orjson
from pydantic import BaseModel

from tools.capabilities import CallContext
from tools.contract import Effect, ToolContract
from tools.errors import ToolErrorCode
from tools.failure import duration_words

TTL_S = 30.0
MAX_ENTRIES = 256  # of at most 64 KiB each
NOTE_BYTES = 40  # what `told` adds at most

FAILURES = 3
OPEN_S = 30.0
_NO_ANSWER = frozenset({ToolErrorCode.TOOL_TIMEOUT, ToolErrorCode.UNAVAILABLE})


@dataclass(frozen=True, slots=True)
class Kept:
    """A result as it was given, and when, by the loop's clock in seconds."""

    content: str
    summary: str
    cut: bool
    at_s: float


class ResultCache:
    """In memory, bounded, oldest out first; what is too old goes with the next that comes."""

    def __init__(self, ttl_s: float = TTL_S, max_entries: int = MAX_ENTRIES) -> None:
        self._ttl_s = ttl_s
        self._max_entries = max_entries
        self._kept: OrderedDict[bytes, Kept] = OrderedDict()

    def get(self, key: bytes | None, now_s: float) -> Kept | None:
        """What was kept under the key, unless it is too old; None is nobody's key."""
        kept = self._kept.get(key) if key is not None else None
        return kept if kept is not None and now_s - kept.at_s < self._ttl_s else None

    def put(self, key: bytes | None, kept: Kept) -> None:
        """Keep it, instead of what was there."""
        if key is None:
            return
        self._kept.pop(key, None)
        self._kept[key] = kept
        while self._oldest_goes(kept.at_s):
            self._kept.popitem(last=False)

    def _oldest_goes(self, now_s: float) -> bool:
        oldest = next(iter(self._kept.values()))
        return len(self._kept) > self._max_entries or now_s - oldest.at_s >= self._ttl_s


def key_of(contract: ToolContract, arguments: BaseModel, context: CallContext) -> bytes | None:
    """Who asks what, where, through which connections; None for what is asked anew each time."""
    if contract.live or contract.effect is not Effect.READ_ONLY:
        return None
    asked = [
        contract.id, arguments.model_dump(mode="json"), context.team, context.actor,
        context.session_id, context.purpose, context.products, context.reading,
        sorted(context.connection_ids),
    ]  # fmt: skip
    return hashlib.sha256(orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)).digest()


def told(kept: Kept, now_s: float) -> str:
    """The result, saying that and since when it is from the cache."""
    age = duration_words(now_s - kept.at_s)
    comma = "" if kept.content == "{}" else ","
    return f'{kept.content[:-1]}{comma}"from_cache":"read {age} ago"}}'


@dataclass(slots=True)
class _Row:
    failures: int = 0
    closed_again_s: float = 0.0


class Breaker:
    """Per tool, in this process. `clock` is monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._rows: dict[str, _Row] = {}

    def refusal(self, tool_id: str) -> str | None:
        """Why the tool is not asked now, or None. Whoever gets None first after a pause tries alone."""
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
        """An execution ended before it asked anybody: the next one may try."""
        row = self._rows.get(tool_id)
        if row is not None:
            row.closed_again_s = min(row.closed_again_s, self._clock())

    def ended(self, tool_id: str, code: ToolErrorCode | None) -> None:
        """How an execution ended; None is well. Any answer closes it, also a refusal."""
        if code not in _NO_ANSWER:
            self._rows.pop(tool_id, None)
            return
        row = self._rows.setdefault(tool_id, _Row())
        row.failures += 1
        row.closed_again_s = self._clock() + OPEN_S
