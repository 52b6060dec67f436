"""What `kortex check` says of one part."""

from dataclasses import dataclass

from adapters.fault import Fault


@dataclass(frozen=True, slots=True)
class Finding:
    """The state of one part. Not `configured`: not set up, which is not a failure.

    A `warning` works as configured, and may surprise. `mend` is the remedy for an unhealthy part;
    empty: the part's own text, for that `fault` if known.
    """

    part: str
    ok: bool
    detail: str
    configured: bool = True
    warning: bool = False
    mend: str = ""
    fault: Fault | None = None

    @property
    def fails(self) -> bool:
        return not self.ok and self.configured and not self.warning

    @property
    def rank(self) -> int:
        """For sorting: failures first, parts that are not set up last."""
        return ("FAILED", "WARNING", "ok", "not set").index(self.mark)

    @property
    def mark(self) -> str:
        if self.ok:
            return "ok"
        if self.warning:
            return "WARNING"
        return "FAILED" if self.configured else "not set"
