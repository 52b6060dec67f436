"""Who waits in this process for more of a conversation. Other replicas' readers look for themselves."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class ChatNotifier:
    """By session. Readers look at the log anyway, so a missed notification costs a moment."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}

    def notify(self, session_id: str) -> None:
        for waiting in self._waiting.get(session_id, ()):
            waiting.set()

    @contextmanager
    def subscribe(self, session_id: str) -> Iterator[asyncio.Event]:
        """Set whenever there is more; a waiter clears it before it looks."""
        event = asyncio.Event()
        waiting = self._waiting.setdefault(session_id, set())
        waiting.add(event)
        try:
            yield event
        finally:
            waiting.discard(event)
            if not waiting and self._waiting.get(session_id) is waiting:
                del self._waiting[session_id]
