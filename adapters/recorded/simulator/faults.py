"""What can be wrong with one service, and how wrong it is at an instant."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

RECOVERY_S: Final = 45.0  # the queues are empty before the next sample but one


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of one service: it starts, grows over `ramp_s`, and stays until `ended_at`, if ever.

    `added_self_ms` is own time added to every request; `extra_calls` more calls per request to a
    dependency; `connections_ratio` what a datastore's pool climbs to (None: not affected).
    """

    service: str
    started_at: datetime
    ramp_s: float
    added_self_ms: float = 0.0
    added_error_ratio: float = 0.0
    extra_calls: Mapping[str, int] = field(default_factory=dict)
    added_cpu_ratio: float = 0.0
    connections_ratio: float | None = None
    error_text: str = "internal error"
    timeout_ms: float = 0.0  # how long a request lasts before it fails this way
    wait_operation: str = ""  # the span in which added time is spent; empty: the service's own
    ended_at: datetime | None = None

    def intensity(self, at_s: float) -> float:
        """0 before the start and after its end, 1 when fully grown. `at_s`: since the epoch."""
        elapsed_s = at_s - self.started_at.timestamp()
        if elapsed_s < 0:
            return 0.0
        grown = min(1.0, (elapsed_s + 1.0) / self.ramp_s)
        if self.ended_at is None:
            return grown
        over_s = at_s - self.ended_at.timestamp()
        return grown if over_s < 0 else grown * max(0.0, 1.0 - over_s / RECOVERY_S)
