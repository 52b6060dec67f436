"""The queue at a write gate, which records everyone who joins it. Imported by tests."""

import threading
from typing import Any


class Arriving(dict[Any, Any]):
    """In place of `Gate._waiting`; `one` is released for each who comes to wait."""

    def __init__(self) -> None:
        self.one = threading.Semaphore(0)

    def __setitem__(self, turn: Any, is_urgent: Any) -> None:
        super().__setitem__(turn, is_urgent)
        self.one.release()
