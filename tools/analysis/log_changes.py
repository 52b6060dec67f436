"""Log templates that are new, more frequent or gone, relative to their product's load.

Errors are also compared with a day: an hour holds too few of the recurring ones.
"""

import math
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tools.analysis.usual import quantile
from tools.capabilities import LogLine
from tools.log_templates import named_in, template_of

BAD_LEVELS: Final = frozenset({"error", "fatal"})
_LEVEL: Final = re.compile(r"\b(FATAL|CRITICAL|PANIC|ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE)\b")
_TROUBLE: Final = re.compile(
    r"(?i)\b(fail(ed|ure|over|s)?|exceed(ed|s)|critically|exhaust(ed|ion)|refused|rejected|timed? ?out|"
    r"too many|out of (memory|space|disk)|unavailable|crash(ed|es)?|panic|corrupt(ed|ion)?|deadlock|"
    r"falling behind|is behind|no longer responds?|unreachable|approaching|imminently)\b"
)
_LEVELS: Final[Mapping[str, str]] = {
    "FATAL": "fatal",
    "CRITICAL": "fatal",
    "PANIC": "fatal",
    "CRIT": "fatal",
    "EMERG": "fatal",
    "ALERT": "fatal",
    "ERROR": "error",
    "ERR": "error",
    "SEVERE": "error",
    "WARN": "warn",
    "WARNING": "warn",
    "INFO": "info",
    "NOTICE": "info",
    "DEBUG": "debug",
    "TRACE": "debug",
}
_TOLD: Final = frozenset(_LEVELS.values())

_LEAST_LOAD: Final = 20  # lines of a product before, to take their number as its load
_GONE_LEAST: Final = 8.0  # lines that should have come; chance leaves out e^-8 of such silences
_GROWN: Final = 2.0  # times as often as would have come, and
_SURPRISING: Final = 3.0  # standard deviations beyond it
_BUSY: Final = 5.0  # lines in a minute: with so many, one without any was not recorded (e^-5)
_FEWEST_STRETCHES: Final = 4  # of the window's length in a day's errors, to know the baseline
_OFTEN: Final = 0.9  # a burst in one stretch of ten does not make it usual
_NS: Final = 1_000_000_000

Change = Literal["new", "grown", "steady", "gone"]
_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Sample:
    """Lines by product, newest first, of [start_s, end_s). `counts` are of all, read or not.

    `errors` are of the same time, read on their own of those products that were not read whole.
    """

    lines: Mapping[str, Sequence[LogLine]]
    counts: Mapping[str, int]
    start_s: float
    end_s: float
    errors: "Sample | None" = None

    def count(self, product: str) -> int:
        read = len(self.lines.get(product, ()))
        return max(read, self.counts.get(product, read))

    def scale(self, product: str, level: str = "") -> float:
        """The number of lines that one line read represents."""
        if self.errors and level in BAD_LEVELS and product in self.errors.lines:
            return self.errors.scale(product)
        read = len(self.lines.get(product, ()))
        return self.count(product) / read if read else 1.0

    def folded(self) -> dict["_Key", list[LogLine]]:
        """Lines by product, level and template."""
        folded: dict[_Key, list[LogLine]] = defaultdict(list)
        own = self.errors.lines if self.errors else {}
        for product, of_product in (*self.lines.items(), *own.items()):
            is_own = of_product is own.get(product)
            for line in of_product:
                level = level_of(line.level, line.message)
                if not is_own and product in own and level in BAD_LEVELS and _is_told(line):
                    continue
                folded[product, level, template_of(line.message)].append(line)
        return folded

    @property
    def covered_s(self) -> float:
        """Seconds that lines were recorded in; recordings begin and have gaps, quiet systems do not."""
        whole = [of for product, of in self.lines.items() if self.count(product) == len(of)]
        number = sum(map(len, whole))
        length = max(1.0, self.end_s - self.start_s)
        if not number:
            return length
        minutes = {line.ts_ns // (60 * _NS) for of in whole for line in of}
        if number >= _BUSY * len(minutes):
            return min(length, 60.0 * len(minutes))
        oldest = min(line.ts_ns for of in whole for line in of) / _NS
        return min(length, (self.end_s - oldest) * (number + 1) / number)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A template of a product. `size` is how surprising, in standard deviations.

    `count` lines in the window, `before` in the time that it is compared with, `expected` what the
    window would hold had nothing changed. Times are nanoseconds, of the window's lines; of one gone,
    of those before. `began_before`: it was as frequent already before the window.
    """

    product: str
    level: str
    template: str
    change: Change
    count: int
    before: int
    expected: float
    size: float
    first_ns: int
    last_ns: int
    example: str
    hosts: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    began_before: bool = False


def level_of(level: str, text: str) -> str:
    """The reported level, else the one that the line begins with, else the one its words suggest.

    Event streams (of clouds, of databases) report none.
    """
    known = _LEVELS.get(level.upper(), level.lower())
    if known in _TOLD:
        return known
    found = _LEVEL.search(text[:80])
    if found:
        return _LEVELS[found[1]]
    return "error" if _TROUBLE.search(text) else ""


def patterns_of(
    now: Sample,
    earlier: Sample,
    *,
    products: Collection[str] = (),
    by_load: bool = True,
    day: Sample | None = None,
) -> Sequence[Pattern]:
    """Every template of the window, and those that stopped; the most surprising first.

    `by_load`: all lines were read, so a template that grows with all others of its product did not
    change. `day` holds the errors of the day before, of levels that the backend knows.
    """
    comparing = _Comparing(now, earlier, by_load=by_load, day=day)
    found = (comparing.judged(key, products) for key in comparing.keys)
    kept = [one for one in found if one is not None]
    return sorted(kept, key=lambda one: (-one.size, one.product, one.template))


class _Comparing:
    def __init__(self, now: Sample, earlier: Sample, *, by_load: bool, day: Sample | None) -> None:
        self._now, self._earlier, self._day = now, earlier, day
        self._late, self._early = now.folded(), earlier.folded()
        self._of_day = day.folded() if day else {}
        self._by_load = by_load
        self._by_time = now.covered_s / earlier.covered_s
        self._times = {
            product: sorted(line.ts_ns for line in of) for product, of in now.lines.items()
        }
        self.keys = self._late.keys() | self._early.keys()

    def judged(self, key: _Key, products: Collection[str]) -> Pattern | None:
        product, level, template = key
        late, early = self._late.get(key, []), self._early.get(key, [])
        count = round(len(late) * self._now.scale(product, level))
        before = round(len(early) * self._earlier.scale(product, level))
        silent = self._silence(product, late, before)
        expected, began_before = before * self._load(product), False
        usual = self._usual_in_a_day(key) if level in BAD_LEVELS and late else None
        if usual is not None:
            began_before = not _is_more(count, expected) and before > 0
            before, expected = usual
        change = _change(count, before, expected)
        if change == "steady" and silent >= _GONE_LEAST and silent > 2 * count:
            change, expected = "gone", silent
        if change == "steady" and not late:
            return None
        shown = early if change == "gone" and early else late
        times = [line.ts_ns for line in shown]
        hosts = Counter(line.host for line in shown if line.host)
        return Pattern(
            product=product,
            level=level,
            template=template,
            change=change,
            count=count,
            before=before,
            expected=round(expected, 2),
            size=abs(_surprise(count, expected)) if change != "gone" else math.sqrt(expected),
            first_ns=min(times),
            last_ns=max(times),
            example=shown[0].message,
            hosts=tuple(host for host, _number in hosts.most_common(5)),
            names=tuple(one for one in named_in(shown[0].message, products) if one != product),
            began_before=began_before and change != "gone",
        )

    def _load(self, product: str) -> float:
        before, after = self._earlier.count(product), self._now.count(product)
        if not self._by_load or before < _LEAST_LOAD:
            return self._by_time
        return min(max(after / before, self._by_time / 4), self._by_time * 4)

    def _silence(self, product: str, late: Sequence[LogLine], before: int) -> float:
        """How many should have come since the last one, by the product's other lines."""
        if not self._by_load:
            return 0.0 if late else before * self._by_time
        whole = self._earlier.count(product)
        if whole < _LEAST_LOAD:
            return 0.0
        last = max((line.ts_ns for line in late), default=-1)
        times = self._times.get(product, [])
        since = (len(times) - bisect_right(times, last)) * self._now.scale(product)
        return before * since / whole

    def _usual_in_a_day(self, key: _Key) -> tuple[int, float] | None:
        """The day's count, and the count that a stretch like the window exceeds one time in ten.

        None if the day's errors are unusable: gaps in the recording, or levels only in the text of
        lines.
        """
        day, product = self._day, key[0]
        if day is None or not all(_is_told(line) for line in self._late[key]):
            return None
        if self._earlier.covered_s < (self._earlier.end_s - self._earlier.start_s) / 2:
            return None
        length = self._now.end_s - self._now.start_s
        of_product = day.lines.get(product, ())
        is_cut = day.count(product) > len(of_product)
        start = of_product[-1].ts_ns / _NS if is_cut else day.start_s
        number = int((day.end_s - start) / length)
        if number < _FEWEST_STRETCHES:
            return None
        found = [line.ts_ns / _NS for line in self._of_day.get(key, ())]
        stretches = Counter(int((day.end_s - at) / length) for at in found)
        counts = sorted(float(stretches[one]) for one in range(number))
        return len(found), max(sum(counts) / number, quantile(counts, _OFTEN))


def _is_told(line: LogLine) -> bool:
    return _LEVELS.get(line.level.upper(), line.level.lower()) in _TOLD


def _change(count: int, before: int, expected: float) -> Change:
    if count and not before:
        return "new"
    return "grown" if _is_more(count, expected) else "steady"


def _is_more(count: int, expected: float) -> bool:
    return count >= _GROWN * expected and _surprise(count, expected) >= _SURPRISING


def _surprise(count: int, expected: float) -> float:
    return (count - expected) / math.sqrt(max(expected, 1.0) + expected**2 / 100)
