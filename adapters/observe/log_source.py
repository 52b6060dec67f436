"""What a log backend with fields has to do, so that `field_logs` makes the Logs port of it.

Fields are flat names (`service.name`); which of them holds products is found by `field_places`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from adapters.observe.log_entry import Newest
from tools.capabilities import Interval


@dataclass(frozen=True, slots=True)
class Wanted:
    """Lines whose `field` is one of `values`, in [start_ns, end_ns), newest first.

    `min_level` and `filter` are those of LogQuery.
    """

    field: str
    values: tuple[str, ...]
    start_ns: int
    end_ns: int
    min_level: str = ""
    filter: str = ""


class LogSource(Protocol):
    """One backend. Every method raises UpstreamFailed, CapabilityUnavailable, InvalidArguments."""

    @property
    def name(self) -> str: ...

    @property
    def most(self) -> int:
        """How many entries one answer holds."""
        ...

    def filters(self, text: str) -> bool:
        """Whether it selects by this filter exactly; else lines are judged after they came."""
        ...

    async def fields(self, interval: Interval) -> Sequence[str]:
        """The existing fields, or at least the possible product fields."""
        ...

    async def values(self, field: str, interval: Interval) -> Mapping[str, str]:
        """A field's values in that time, at most ten thousand, each with the name it means."""
        ...

    async def newest(self, wanted: Wanted, limit: int) -> Newest:
        """At most `limit`, with their field among the labels. Of a tie it is not defined which."""
        ...

    async def counts(self, wanted: Wanted) -> Mapping[str, int]: ...
