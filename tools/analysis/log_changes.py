"""Which kinds of log lines are new, more frequent, or no longer come, measured by their product's load."""

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

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
    "ERROR": "error",
    "WARN": "warn",
    "WARNING": "warn",
    "INFO": "info",
    "DEBUG": "debug",
    "TRACE": "debug",
}

_LEAST_LOAD: Final = 20  # lines of a product before, to take their number as its load
_GONE_LEAST: Final = 8.0  # lines that should have come; chance leaves out e^-8 of such silences

Change = Literal["new", "grown", "gone"]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a product, before or within the window. `level` is normalised or empty."""

    product: str
    level: str
    text: str
    late: bool
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Pattern:
    """A template whose frequency changed. `size` is how surprising, in standard deviations.

    `before` is the number of lines before, `after` in the window, `expected` what the window would
    hold if nothing had changed. `since` is the first of them in the window (of one gone: the last
    one before).
    """

    product: str
    level: str
    template: str
    change: Change
    before: int
    after: int
    expected: float
    size: float
    since: float
    example: str
    names: tuple[str, ...] = ()


def level_of(level: str, text: str) -> str:
    """The level told, else the one the line itself begins with, else what its words say.

    Event streams (of clouds, of databases) tell none.
    """
    known = _LEVELS.get(level.upper(), level.lower())
    if known in {"debug", "info", "warn", "error", "fatal"}:
        return known
    found = _LEVEL.search(text[:80])
    if found:
        return _LEVELS[found[1]]
    return "error" if _TROUBLE.search(text) else ""


def changed_patterns(
    lines: Iterable[Line], *, before_s: float, after_s: float, products: Collection[str] = ()
) -> Sequence[Pattern]:
    """What changed, the most surprising first. The seconds are those that lines were read of.

    A product's own rate of lines is taken as its load: a template that grows with all the others of
    its product did not change.
    """
    folded: dict[tuple[str, str, str], list[Line]] = {}
    total: Counter[tuple[str, bool]] = Counter()
    late_times: dict[str, list[float]] = {}
    for line in lines:
        level = level_of(line.level, line.text)
        folded.setdefault((line.product, level, template_of(line.text)), []).append(line)
        total[line.product, line.late] += 1
        if line.late:
            late_times.setdefault(line.product, []).append(line.at)
    for times in late_times.values():
        times.sort()
    found = []
    for (product, level, template), of_template in folded.items():
        late = [line for line in of_template if line.late]
        counts = len(of_template) - len(late), len(late)
        load = _load(total[product, False], total[product, True], before_s, after_s)
        tail = _tail(of_template, late_times.get(product, ()), total[product, False])
        pattern = _judged(product, level, template, of_template, counts, (load, tail), products)
        if pattern is not None:
            found.append(pattern)
    return sorted(found, key=lambda p: (-p.size, p.product, p.template))


def _load(before: int, after: int, before_s: float, after_s: float) -> float:
    """What one line before stands for in the window."""
    by_time = after_s / before_s if before_s > 0 else 1.0
    if before < _LEAST_LOAD:
        return by_time
    return min(max(after / before, by_time / 4), by_time * 4)


def _tail(lines: Sequence[Line], late: Sequence[float], before: int) -> float:
    """What one line before stands for since the template was seen last, by its product's others."""
    last = max((line.at for line in lines if line.late), default=-math.inf)
    since = len(late) - bisect_right(late, last)
    return since / before if before >= _LEAST_LOAD else 0.0


def _judged(
    product: str,
    level: str,
    template: str,
    lines: Sequence[Line],
    counts: tuple[int, int],
    loads: tuple[float, float],
    products: Collection[str],
) -> Pattern | None:
    before, after = counts
    load, tail = loads
    expected = before * load
    surprise = (after - expected) / math.sqrt(max(expected, 1.0) + 0.1 * expected**2 / 10)
    change: Change
    if not before and after:
        change = "new"
    elif after >= 2 * expected and surprise >= 3:
        change = "grown"
    elif before * tail >= _GONE_LEAST and before * tail > 2 * after:
        change, expected = "gone", before * tail
        surprise = math.sqrt(expected)
    else:
        return None
    shown = [line for line in lines if line.late] or list(lines)
    times = [line.at for line in shown]
    text = shown[0].text
    return Pattern(
        product=product,
        level=level,
        template=template,
        change=change,
        before=before,
        after=after,
        expected=round(expected, 2),
        size=abs(surprise),
        since=min(times) if change != "gone" else max(times),
        example=text[:400],
        names=named_in(text, [one for one in products if one != product]),
    )
