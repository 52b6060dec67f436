"""What the placeholders of identifiers stand for, per session, in this process's memory only.

A session resolves the placeholders that were made in it and no others; a secret's mark is never
told to it. After a restart a placeholder stays one.
"""

import re
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from tools.redactor import MASK_PREFIX

SESSIONS_KEPT: Final = 500
PLACEHOLDERS_PER_SESSION: Final = 2000
_PLACEHOLDER: Final = re.compile(re.escape(MASK_PREFIX) + r"[a-z-]{1,40}#[0-9a-f]{12}\]")
_SESSION: ContextVar[str] = ContextVar("session whose texts are being redacted", default="")


def current_session() -> str:
    """The session whose texts are being redacted; "" outside of any."""
    return _SESSION.get()


class Placeholders:
    """Told by the redactor while a session's texts are redacted `within` it."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, OrderedDict[str, str]] = OrderedDict()

    @contextmanager
    def within(self, session: str) -> Iterator[None]:
        """What is redacted in here, and in tasks started in here, belongs to that session."""
        token = _SESSION.set(session)
        try:
            yield
        finally:
            _SESSION.reset(token)

    def remember(self, placeholder: str, value: str) -> None:
        """Keep one for the session at hand; outside of any it is not kept."""
        session = _SESSION.get()
        if not session:
            return
        known = self._sessions.setdefault(session, OrderedDict())
        known[placeholder] = value
        self._sessions.move_to_end(session)
        while len(known) > PLACEHOLDERS_PER_SESSION:
            known.popitem(last=False)
        while len(self._sessions) > SESSIONS_KEPT:
            self._sessions.popitem(last=False)

    def resolved(self, text: str, session: str = "") -> str:
        """The text with the placeholders of that session, else of the one at hand, resolved."""
        known = self._sessions.get(session or _SESSION.get())
        if known is None or MASK_PREFIX not in text:
            return text
        return _PLACEHOLDER.sub(lambda m: known.get(m.group(), m.group()), text)
