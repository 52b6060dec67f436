"""What `kortex check` says of one part."""

from dataclasses import dataclass

from adapters.fault import Fault


@dataclass(frozen=True, slots=True)
class Finding:
    """One part. Not `configured` means that it is not set up, which is no failure.

    A `warning` works as it is set up, and somebody will be surprised by it. `mend` is what to do
    about one that is not well; empty: what its part says, of that `fault` if one is known.
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
        """Whether something configured does not work."""
        return not self.ok and self.configured and not self.warning

    @property
    def rank(self) -> int:
        """For sorting: what failed first, what is not set up last."""
        return ("FAILED", "WARNING", "ok", "not set").index(self.mark)

    @property
    def mark(self) -> str:
        """For a table."""
        if self.ok:
            return "ok"
        if self.warning:
            return "WARNING"
        return "FAILED" if self.configured else "not set"
