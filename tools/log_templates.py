"""Log lines folded into templates, with counts against an earlier time. Pure.

Masks instead of a learned tree (drain3 and its likes): the same line gives the same template in any
order and in any process, nothing has to be trained or kept, and no dependency is added (drain3 0.9.11, the
newest, pins releases of jsonpickle and cachetools of January 2021).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tools.capabilities import LogLine

Change = Literal["new", "grown", "steady", "gone"]

MAX_CHARS: Final = 200
GROWN: Final = 3.0  # times as often, and
LEAST_MORE: Final = 5.0  # so many more than would have come
GONE_LEAST: Final = 8.0  # lines that would have come: chance leaves out one such silence in 3,000
_READ_CHARS: Final = 4000  # of a line; a stack trace's cause is within it
_CLOCK: Final = re.compile(
    r"^\W*(\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:?\d\d)?\W*"
)
_MASKS: Final = (
    (re.compile(r"(?i)\b(trace|span|request|correlation)[_-]?id\W{1,3}[\w-]+"), ""),
    (re.compile(r"\b[\w.+-]+@[\w-]+(\.[\w-]+)+\b"), "<mail>"),
    (re.compile(r"\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b"), "<addr>"),
    (re.compile(r"'[^']{0,200}'|\"[^\"]{0,200}\""), "<text>"),
    (re.compile(r"(?i)\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<id>"),
    (re.compile(r"(?i)\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,}\b|\b\d{7,}\b"), "<id>"),
    (
        re.compile(
            r"(?<![\w.])-?\d+([.,:]\d+)*(?=(ms|s|us|µs|ns|m|h|kb|mb|gb|b|%)?\b)", re.IGNORECASE
        ),
        "<n>",
    ),
    (re.compile(r"\d+"), "<n>"),
    (re.compile(r"(<n>[\s,;:/|-]*){2,}"), "<n> "),
)
_CAUSE: Final = re.compile(r"^\s*Caused by: ([^\n]{1,300})", re.MULTILINE)
_RANK: Final = {"fatal": 0, "error": 1, "warn": 2, "unknown": 3, "info": 4, "debug": 5}
_FIRST: Final[Mapping[Change, int]] = {"new": 0, "grown": 1, "gone": 2, "steady": 3}


@dataclass(frozen=True, slots=True)
class Pattern:
    """A template of a product. `count` lines in the window, `before` in the earlier one.

    `expected` is what the window would hold had nothing changed. Times are nanoseconds, of the
    window; of one that is gone, of the time before.
    """

    product: str
    level: str
    template: str
    change: Change
    count: int
    before: int
    expected: float
    first_ns: int
    last_ns: int
    example: str
    hosts: tuple[str, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """Lines by product, newest first, over so many seconds. `counts` are of all, read or not."""

    lines: Mapping[str, Sequence[LogLine]]
    counts: Mapping[str, int]
    seconds: float

    def scale(self, product: str) -> float:
        """What one line that was read stands for."""
        read = len(self.lines.get(product, ()))
        return max(1.0, self.counts.get(product, read) / read) if read else 1.0


def template_of(line: str) -> str:
    """What stays the same from one such line to the next; of a stack trace also its last cause."""
    text = line[:_READ_CHARS]
    causes = _CAUSE.findall(text)
    first = _CLOCK.sub("", text.lstrip().partition("\n")[0])
    if causes:
        first = f"{first} ← {causes[-1]}"
    for pattern, mask in _MASKS:
        first = pattern.sub(mask, first)
    return " ".join(first.split())[:MAX_CHARS]


def patterns_of(now: Window, earlier: Window, products: Collection[str]) -> list[Pattern]:
    """The most telling first: new, grown, gone, then what comes as always; the worst level first.

    `products` are the names that examples are searched for.
    """
    found, known = _folded(now.lines), _folded(earlier.lines)
    patterns = [
        _pattern(key, found.get(key, []), known.get(key, []), (now, earlier), products)
        for key in found.keys() | known.keys()
    ]
    kept = [one for one in patterns if one.count or one.change == "gone"]
    return sorted(
        kept, key=lambda one: (_FIRST[one.change], _RANK.get(one.level, 3), -one.count, one.product, one.template)
    )  # fmt: skip


def named_in(text: str, names: Collection[str]) -> tuple[str, ...]:
    """Those that a text names as words of their own."""
    lowered = text.lower()
    return tuple(
        name
        for name in sorted(names)
        if name.lower() in lowered
        and re.search(rf"(?<![\w-]){re.escape(name.lower())}(?![\w-])", lowered)
    )


def _folded(
    lines: Mapping[str, Iterable[LogLine]],
) -> dict[tuple[str, str, str], list[LogLine]]:
    folded: dict[tuple[str, str, str], list[LogLine]] = defaultdict(list)
    for product, of_product in lines.items():
        for line in of_product:
            folded[product, line.level or "unknown", template_of(line.message)].append(line)
    return folded


def _pattern(
    key: tuple[str, str, str],
    lines: Sequence[LogLine],
    before: Sequence[LogLine],
    windows: tuple[Window, Window],
    products: Collection[str],
) -> Pattern:
    product, level, template = key
    now, earlier = windows
    count = round(len(lines) * now.scale(product))
    past = round(len(before) * earlier.scale(product))
    expected = past * now.seconds / earlier.seconds if earlier.seconds > 0 else 0.0
    shown = lines or before
    times = [line.ts_ns for line in shown]
    hosts = Counter(line.host for line in shown if line.host)
    example = shown[0].message
    return Pattern(
        product,
        level,
        template,
        _change(count, past, expected),
        count,
        past,
        round(expected, 1),
        min(times),
        max(times),
        example,
        tuple(host for host, _n in hosts.most_common(5)),
        named_in(example[:_READ_CHARS], [name for name in products if name != product]),
    )


def _change(count: int, before: int, expected: float) -> Change:
    if count and not before:
        return "new"
    if not count:
        return "gone" if expected >= GONE_LEAST else "steady"
    return "grown" if count >= GROWN * expected and count - expected >= LEAST_MORE else "steady"
