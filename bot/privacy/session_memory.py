"""Redaction's memory of each session, held in this process only; a restart clears it.

`Placeholders` maps placeholders of identifiers to their values. A session resolves only its own, and
never a secret's. `FoundSecrets` holds secrets found by their context, to mask them without it later.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any, Final

from cachetools import LRUCache

from bot.privacy.looks import random
from bot.privacy.matching import compiled
from tools.redactor import MASK_PREFIX

SESSIONS_KEPT: Final = 500
PLACEHOLDERS_PER_SESSION: Final = 2000
_PLACEHOLDER: Final = re.compile(re.escape(MASK_PREFIX) + r"[a-z-]{1,40}#[0-9a-f]{12}\]")
_SESSION: ContextVar[str] = ContextVar("session of the redacted texts", default="")

SECRETS_PER_SESSION: Final = 200
# A shorter value, or one that reads like a name, would occur by chance.
SHORTEST: Final = 8
LONGEST: Final = 512
# New secrets of one text that are searched for in the rest of it.
NEW_PER_TEXT: Final = 64
_FEW_BYTES: Final = 64 * 1024  # to search this often costs less than to compile a pattern


def current_session() -> str:
    """The session of the texts under redaction; "" outside a session."""
    return _SESSION.get()


class Placeholders:
    """The values of each session's placeholders. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sessions: LRUCache[str, LRUCache[str, str]] = LRUCache(SESSIONS_KEPT)

    @contextmanager
    def within(self, session: str) -> Iterator[None]:
        """Make it the current session, also for tasks started in here."""
        token = _SESSION.set(session)
        try:
            yield
        finally:
            _SESSION.reset(token)

    def remember(self, placeholder: str, value: str) -> None:
        """Keep one for the current session; outside a session nothing is kept."""
        session = _SESSION.get()
        if not session:
            return
        with self._lock:
            known: LRUCache[str, str] = self._sessions.setdefault(
                session, LRUCache(PLACEHOLDERS_PER_SESSION)
            )
            known[placeholder] = value

    def resolved(self, text: str, session: str = "") -> str:
        """The text with the placeholders of `session`, or of the current one, replaced by their values."""
        if MASK_PREFIX not in text:
            return text
        with self._lock:
            known: Mapping[str, str] = self._sessions.get(session or _SESSION.get(), {})
            return _PLACEHOLDER.sub(lambda m: known.get(m.group(), m.group()), text)


class _Secrets:
    __slots__ = ("pattern", "values")

    def __init__(self) -> None:
        self.values: LRUCache[bytes, None] = LRUCache(SECRETS_PER_SESSION)
        self.pattern: Any = None


class FoundSecrets:
    """Secrets found by their context, by session. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sessions: LRUCache[str, _Secrets] = LRUCache(SESSIONS_KEPT)
        self.learned = 0  # how often a session gained a secret

    def remember(self, session: str, values: Iterable[bytes]) -> None:
        """Keep the distinctive ones; without a session ("") none is kept."""
        kept = [v for v in values if is_telling(v)]
        if not session or not kept:
            return
        with self._lock:
            known = self._sessions.setdefault(session, _Secrets())
            if any(value not in known.values for value in kept):
                self.learned += 1
                known.pattern = None
            known.values.update(dict.fromkeys(kept))

    def knows_any(self, session: str) -> bool:
        return session in self._sessions

    def spans(self, session: str, data: bytes) -> Iterator[tuple[int, int]]:
        """The spans of the session's secrets in `data`."""
        pattern = self._pattern(session)
        if pattern is not None:
            yield from (m.span() for m in pattern.finditer(data))

    def _pattern(self, session: str) -> Any:
        if not self.knows_any(session):
            return None
        with self._lock:
            known = self._sessions.get(session)
            if known is None:
                return None
            if known.pattern is None:
                known.pattern = _any_of(known.values)
            return known.pattern


def repeated(data: bytes, found: Mapping[bytes, int]) -> Iterator[tuple[int, int]]:
    """The spans where values occur again, after the end at which each was found."""
    if len(data) * len(found) <= _FEW_BYTES:
        for value, end in found.items():
            at = data.find(value, end)
            while at >= 0:
                yield at, at + len(value)
                at = data.find(value, at + len(value))
    else:
        for match in _any_of(found).finditer(data):
            if match.start() >= found[match[0]]:
                yield match.span()


def is_telling(value: bytes) -> bool:
    """Whether a value is too long and too random to occur by chance."""
    return SHORTEST <= len(value) <= LONGEST and random("", value.decode("latin-1"))


def _any_of(values: Iterable[bytes]) -> Any:
    longest_first = sorted(values, key=lambda v: (-len(v), v))
    return compiled(b"|".join(re.escape(v) if v.isascii() else _hex(v) for v in longest_first))


def _hex(value: bytes) -> bytes:
    return b"".join(b"\\x%02x" % b for b in value)
