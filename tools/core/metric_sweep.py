"""What core__sweep_metrics answers."""

from typing import Literal

from pydantic import Field

from tools.contract import ToolOutput
from tools.signals import Role


class Course(ToolOutput):
    """Points of a series as they were read, each so many seconds before the range's end."""

    before_end_s: list[int]
    values: list[float]


class MetricShift(ToolOutput):
    """A signal of a product that moved. `score`: spreads away from the median before the window.

    `last` is the newest sample of the range, and `last_at` its time where no more came after it
    (else None). `since` may lie before the range: it was `under_way` then. `since_before`: it began even
    earlier. `until` is from when on it was usual again, None while it is not.
    `inferred`: the values show the role, not the name. `only_at` is the label that explains the change
    when the other series of the product did not move: `pod=checkout-3 (1 of 12)`. `full_in_s` is the
    time until a growing series reaches its limit.
    """

    product: str
    role: Role
    signal: str
    unit: str | None = None
    usual: float
    worst: float
    last: float
    last_at: str | None = None
    direction: str
    score: float
    beyond_all_before: bool
    since: str | None = None
    since_before: bool = False
    under_way: bool = False
    until: str | None = None
    requests: float | None = None
    course: Course | None = None
    inferred: bool | None = None
    only_at: str | None = None
    full_in_s: int | None = None


class Disappeared(ToolOutput):
    """A signal that existed before and is gone at the end of the range: the strongest finding.

    `how` is `zero` (traffic, or a counter that never paused, fell to zero or nearly), `ended` (no
    more samples) or `down` (the target is not reached, as `up == 0`). `usual` is the baseline, if
    it was compared. `since` is the first sample of a `zero` (none after a slow fall), and the last
    one of a series that ended; with `since_before` it was so in all data read.
    `only_at` is the replica that it is of, and of how many replicas so many are gone: the others go on.
    """

    product: str
    role: Role
    signal: str
    how: Literal["zero", "ended", "down"]
    usual: float | None = None
    unit: str | None = None
    since: str | None = None
    since_before: bool = False
    only_at: str | None = None


class Record(ToolOutput):
    """A product's series that is furthest beyond its earlier range, up or down, of any role.

    `spreads` are those of the series itself, in any unit. It may be too small to matter, and among
    many hundred series some are records by chance.
    """

    product: str
    role: Role
    signal: str
    usual: float
    worst: float
    direction: str
    spreads: float


class MetricGap(ToolOutput):
    """A time without samples of a product that had them before: its state then is unknown.

    `since` is the last sample before, `until` the first after it (None: none came). With `is_down`
    it is `signal` instead that reports an unreachable target, or that no instance runs; with
    `since_before` it was so in all data read.
    """

    product: str
    roles: str
    signal: str | None = None
    since: str
    since_before: bool = False
    until: str | None = None
    is_down: bool = False


class Comparable(ToolOutput):
    """From when on a range can be compared, and when the same range up to now can be (None: it ended)."""

    range_from: str
    asked_at: str | None = None


class MetricStanding(ToolOutput):
    """A signal without a baseline: its first value, its current one, and a limit that it exceeds.

    `first_at` is when its data began; None if it may be older than the data read.
    """

    product: str
    role: Role
    signal: str
    unit: str | None = None
    first: float
    first_at: str | None = None
    now: float
    direction: str
    size: float
    limit: float | None = None
    runs_out_s: int | None = None


class MetricSweep(ToolOutput):
    """The shifts, worst first, and the coverage: roles within the baseline by product.

    `too_short` is measured, but has no data of `least_before_s` before the range; `comparable` says
    when it will be comparable. `standing` are series without a comparison that are bad or have a
    clear trend, and high constant failures. `gaps` are times without data. An all-clear for a
    product needs all of this: `within` has its roles, and `unchecked`, the existing roles that were
    not compared, does not list it. So do `disappeared` and `records`; `more_records` is the number
    of products cut, and `compared` that of series with a baseline. `unnamed`, as `beyond/compared`,
    starts with 0 for it: these are the series of role `other`, beyond a robust bound in any unit.
    `truncated` is false, and `unread` is 0: the number of existing series that were not read,
    because the sweep reads a bounded number. Roles without a shift are also compared with the last
    day, from `day_from` on; `day_unread` says why not. `time_of_day` has the roles that are normal only for this time of day. `traffic` is the
    current load of the busiest products and of the subject, in the unit of their own signal. The
    most important shifts have their `course`, for charts: the window and half as long before it.
    """

    range: str
    baseline_from: str
    day_from: str | None = None
    day_unread: str | None = None
    step_s: float
    shifts: list[MetricShift]
    within: dict[str, str]
    too_short: dict[str, str]
    least_before_s: float
    comparable: dict[str, Comparable]
    standing: list[MetricStanding]
    gaps: list[MetricGap]
    traffic: dict[str, float]
    without: list[str]
    requests: int
    truncated: bool
    unchecked: dict[str, str] = Field(default_factory=dict)
    disappeared: list[Disappeared] = Field(default_factory=list)
    unnamed: dict[str, str] = Field(default_factory=dict)
    unread: int = 0
    records: list[Record] = Field(default_factory=list)
    more_records: int = 0
    compared: int = 0
    time_of_day: dict[str, str] = Field(default_factory=dict)
    notes: list[str] | None = None
