"""Results of reads that were made a moment ago, for the same person in the same session.

Holds what a model was given, redacted and cut already; never a failure, never what proposes.
"""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass

import orjson
from pydantic import BaseModel

from tools.capabilities import CallContext
from tools.contract import Effect, ToolContract
from tools.failure import duration_words

TTL_S = 30.0
MAX_ENTRIES = 256  # of at most 64 KiB each
NOTE_BYTES = 40  # what `told` adds at most


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
