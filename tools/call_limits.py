"""What one turn may ask of its tools, as data, and what it has asked already.

Counted by the caller from the turn's own record, so that a turn taken up again counts the same.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields

MAX_RESULT_BYTES = 64 * 1024  # of one result, as JSON; nothing raises it
MIN_RESULT_BYTES = 8 * 1024  # with less, a page of logs could not be cut at a whole line


@dataclass(frozen=True, slots=True)
class Spent:
    """Before this call: calls made in the turn, bytes of their results, calls equal to this one."""

    calls: int = 0
    result_bytes: int = 0
    same_calls: int = 0


NOTHING_SPENT = Spent()


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Limits of a turn (`calls`, `turn_bytes`, `same_calls`) and of each call (the other two).

    `call_time_s` only shortens what a tool's timeout allows. Raises ValueError when a limit is not
    positive, or a result could not be cut to its limit.
    """

    calls: int = 60
    same_calls: int = 2
    turn_bytes: int = 2 * 1024 * 1024
    result_bytes: int = MAX_RESULT_BYTES
    call_time_s: float = 300.0

    def __post_init__(self) -> None:
        """Refuse what would be no limit."""
        if min(self.calls, self.same_calls, self.turn_bytes) < 1 or not self.call_time_s > 0:
            raise ValueError("a limit of tool calls must be positive")
        if not MIN_RESULT_BYTES <= self.result_bytes <= MAX_RESULT_BYTES:
            raise ValueError("a result may have 8 to 64 KiB")

    def refusal(self, spent: Spent) -> str | None:
        """Why one more call is too many, in words a model can act on; None when it is not."""
        if spent.same_calls >= self.same_calls:
            times = {1: "once", 2: "twice"}.get(self.same_calls, f"{self.same_calls} times")
            return (
                f"this same call was made {times} in this turn already; "
                "use its results, or ask for something else"
            )
        if spent.calls >= self.calls:
            return f"a turn may make {self.calls} tool calls; answer with the results so far"
        if spent.result_bytes >= self.turn_bytes:
            return f"a turn may read {self.turn_bytes} bytes of results; answer with the results so far"
        return None


DEFAULT_LIMITS = CallLimits()


def smallest(limits: Iterable[CallLimits]) -> CallLimits:
    found = list(limits)
    return CallLimits(
        **{f.name: min(getattr(each, f.name) for each in found) for f in fields(CallLimits)}
    )
