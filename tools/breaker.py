"""A tool whose backend does not answer is left alone for a while: asking again would hold up a turn.

Three failures in a row, by running out of time or by not being there, open it; then one call tries.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tools.errors import ToolErrorCode

FAILURES = 3
OPEN_S = 30.0
_NO_ANSWER = frozenset({ToolErrorCode.TOOL_TIMEOUT, ToolErrorCode.UNAVAILABLE})


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

    def ended(self, tool_id: str, code: ToolErrorCode | None) -> None:
        """How an execution ended; None is well. Any answer closes it, also a refusal."""
        if code not in _NO_ANSWER:
            self._rows.pop(tool_id, None)
            return
        row = self._rows.setdefault(tool_id, _Row())
        row.failures += 1
        row.closed_again_s = self._clock() + OPEN_S
