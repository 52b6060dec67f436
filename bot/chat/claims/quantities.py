"""Figures with their units: of a sentence, of a text, and whether two are equal.

A figure means every value that rounds to it in its last place: 1.8 s is 1.75 s to 1.85 s. Units of
one family are converted; nothing else is scaled.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from bot.chat.claims.lexicon import plain

# unit → (family, how many of the family's base); bases: seconds, 1, bytes.
_UNITS: dict[str, tuple[str, float]] = {
    **dict.fromkeys(("ns", "nanoseconds"), ("time", 1e-9)),
    **dict.fromkeys(("µs", "μs", "us", "microseconds"), ("time", 1e-6)),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), ("time", 1e-3)),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), ("time", 1.0)),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), ("time", 60.0)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), ("time", 3600.0)),
    **dict.fromkeys(("d", "day", "days"), ("time", 86400.0)),
    **dict.fromkeys(("%", "percent"), ("ratio", 0.01)),
    **dict.fromkeys(("x", "×", "times", "-fold", "fold"), ("factor", 1.0)),
    **dict.fromkeys(("σ", "sigma"), ("z", 1.0)),
    **dict.fromkeys(("rps", "qps", "req/s", "requests/s", "/s"), ("rate", 1.0)),
    **dict.fromkeys(("B", "byte", "bytes"), ("bytes", 1.0)),
    **dict.fromkeys(("KB", "kB"), ("bytes", 1e3)),
    "MB": ("bytes", 1e6), "GB": ("bytes", 1e9), "TB": ("bytes", 1e12),
    **dict.fromkeys(("KiB", "Ki"), ("bytes", 2.0**10)), **dict.fromkeys(("MiB", "Mi"), ("bytes", 2.0**20)),
    **dict.fromkeys(("GiB", "Gi"), ("bytes", 2.0**30)), "TiB": ("bytes", 2.0**40),
    "k": ("", 1e3), "K": ("", 1e3), "M": ("", 1e6),
}  # fmt: skip
_UNIT = "|".join(re.escape(u) for u in sorted(_UNITS, key=len, reverse=True))
# 15 digits are all that a float holds; longer runs are ids.
_DIGITS = r"\d{1,3}(?:,\d{3}){1,4}(?:\.\d{1,9})?(?!\d)|\d{1,15}(?:\.\d{1,15})?(?!\d)"
_FIGURE = re.compile(
    rf"(?<![\w.:/@#-])(?:[-−+])?({_DIGITS})(?:[ \u00a0\u202f]?({_UNIT})(?![\w/-]))?(?![\w/:@-]|\.\d)"
)
# As `_DIGITS`, but begins with a digit and looks back from there, so that other text is skipped
# fast.
_LOOSE_DIGITS = (
    r"\d(?<![\w.:-]\d)(?:\d{0,2}(?:,\d{3}){1,4}(?:\.\d{1,9})?(?!\d)|\d{0,14}(?:\.\d{1,15})?(?!\d))"
)
_LOOSE = re.compile(rf"({_LOOSE_DIGITS})(?:[ \u00a0\u202f]?({_UNIT})(?!\w))?(?![\w:]|\.\d)")
_COMPOUND = re.compile(
    r"(?<![\w.:/-])(?:(\d{1,4}) ?(?:d|days?) ?)?(?:(\d{1,4}) ?(?:h|hours?) ?)?"
    r"(?:(\d{1,4}) ?(?:m|min|minutes?) ?)?(?:(\d{1,4}) ?(?:s|sec|seconds?))?(?![\w/-])"
)
_DIGIT = re.compile(r"\d")
_RANGE = re.compile(r"[-–—](?<=\d.)(?=\d)")
_ONE_IN = re.compile(r"(?<![\w.-])1 in (\d{1,4})(?![\w.])")
_AT_LEAST = re.compile(r"(?:more than|over|above|at least|exceed\w*|beyond|>|≥)\s?$", re.IGNORECASE)
_AT_MOST = re.compile(r"(?:less than|under|below|at most|<|≤|fewer than)\s?$", re.IGNORECASE)
# How each of them ends.
_HEDGES = (
    "about", "around", "roughly", "approximately", "nearly", "almost", "some", "circa", "ca.", "~", "≈",
)  # fmt: skip
_BOUNDS = (
    "than", "over", "above", "least", "beyond", ">", "≥", "under", "below", "most", "<", "≤",
)  # fmt: skip
_ORDINALS = (
    "step", "option", "section", "page", "line", "item", "phase", "level", "sev", "severity", "priority", "round",
    "part", "point", "top", "chapter", "port", "http", "status", "code", "#",
)  # fmt: skip
_HEDGE = re.compile(rf"(?:{'|'.join(map(re.escape, _HEDGES))})\s?$", re.IGNORECASE)
_ORDINAL = re.compile(rf"(?<![^\W\d_])(?:{'|'.join(_ORDINALS)})\s?$", re.IGNORECASE)
_HEDGE_SHARE = 0.05
_DENIED = re.compile(
    r"(?:\bnever|\bnot?|n['’]t) (?:exceed\w*|over|above|more than)\s?$", re.IGNORECASE
)
_BOUND_REACH = 3.0  # "more than 2 s" is hardly said of 60 s
_FOLD_SHARE, _FOLD_HALF = 0.25, 0.5  # "doubled" is rounder than "2.0x", and 2.3 is not "tripled"
_ONE_IN_SHARE = 0.15


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a sentence. `value` is in its family's base, `raw` as written."""

    text: str
    raw: float
    value: float
    family: str
    half: float  # half a unit of its last place, in the base
    half_raw: float
    at: int
    end: int
    usual: bool = False
    bound: int = 0  # 1: at least, -1: at most

    @property
    def key(self) -> str:
        """As written, without spaces."""
        return self.text.replace(" ", "")


class KnownNumber(NamedTuple):
    """A number that a result holds. `loose`: from free text, without a unit."""

    raw: float
    value: float
    family: str
    loose: bool = False


def figures(text: str) -> Iterator[Figure]:
    """The figures of a sentence without its names, versions and times."""
    if not _DIGIT.search(text):
        return
    text = _RANGE.sub(" ", text)
    if "1 in " in text:
        for match in _ONE_IN.finditer(text):
            share = 1 / max(1, int(match[1]))
            half = share * _ONE_IN_SHARE
            yield Figure(match[0], share, share, "ratio", half, 0.0, match.start(), match.end())
        text = _ONE_IN.sub(lambda m: " " * len(m[0]), text)
    taken = 0
    for match in _FIGURE.finditer(text):
        if match.start() < taken:
            continue
        before = text[max(0, match.start() - 20) : match.start()]
        if match[2] is None and _stands_behind(before, _ORDINAL, _ORDINALS):
            continue
        compound = _COMPOUND.match(text, match.start(1))
        if compound is not None and compound.end() > match.end() and _parts(compound) > 1:
            taken = compound.end()
            yield _lasting(compound, before)
            continue
        yield _figure(match, before)


def _parts(match: re.Match[str]) -> int:
    return sum(1 for each in match.groups() if each)


def _lasting(match: re.Match[str], before: str) -> Figure:
    sizes = (86400.0, 3600.0, 60.0, 1.0)
    value = sum(int(n) * size for n, size in zip(match.groups(), sizes, strict=True) if n)
    least = min(size for n, size in zip(match.groups(), sizes, strict=True) if n)
    return Figure(
        match[0].strip(), value, value, "time", least / 2, least / 2, match.start(), match.end(),
        _is_usual(before),
    )  # fmt: skip


def _figure(match: re.Match[str], before: str) -> Figure:
    digits = match[1].replace(",", "")
    unit = match[2] or ""
    family, size = _UNITS.get(unit, ("", 1.0))
    raw = float(digits)
    half = 0.5 * 10.0 ** -len(digits.partition(".")[2])
    if _stands_behind(before, _HEDGE, _HEDGES):
        half = max(half, abs(raw) * _HEDGE_SHARE)
    elif unit == "fold":
        half = max(half, min(abs(raw) * _FOLD_SHARE, max(_FOLD_HALF, raw / 10)))
    return Figure(
        match[0].strip(), raw, raw * size, family, half * size, half, match.start(), match.end(),
        _is_usual(before), _bound(before),
    )  # fmt: skip


def _bound(before: str) -> int:
    there = plain(before).rstrip()
    if not (there.endswith(_BOUNDS) or "xceed" in there):
        return 0
    if _AT_LEAST.search(before):
        return -1 if _DENIED.search(before) else 1
    return -1 if _AT_MOST.search(before) else 0


_USUAL = re.compile(
    r"(?:usually|normally|typically|baseline|baseline of)[\s(:]{1,3}$", re.IGNORECASE
)


def _stands_behind(before: str, pattern: re.Pattern[str], ends: tuple[str, ...]) -> bool:
    """Whether it ends so; the pattern is asked only where one of its ends is there."""
    return plain(before).rstrip().endswith(ends) and pattern.search(before) is not None


def _is_usual(before: str) -> bool:
    there = plain(before)
    return ("ly" in there or "baseline" in there) and _USUAL.search(before) is not None


def loose_numbers(text: str) -> Iterator[KnownNumber]:
    for digits, unit in _LOOSE.findall(text):
        raw = float(digits.replace(",", ""))
        family, size = _UNITS.get(unit, ("", 1.0))
        yield KnownNumber(raw, raw * size, family, not unit)


class Numbers:
    """Numbers to look figures up in, each look-up in the logarithm of their count."""

    __slots__ = ("_families", "_plain", "_raws")

    def __init__(self, known: Collection[KnownNumber]) -> None:
        self._raws = sorted({abs(raw) for raw, _, _, _ in known})
        self._families = {
            told: sorted({abs(value) for _, value, family, _ in known if family == told})
            for told in {one.family for one in known}
        }
        self._plain = sorted(
            {abs(r) for r, _, family, loose in known if not family and (not loose or abs(r) >= 100)}
        )

    def __bool__(self) -> bool:
        return bool(self._raws)

    def hold(self, figure: Figure, *, exactly: bool = False) -> bool:
        """Whether one of them is the figure: of its family, or unscaled where no unit is known."""
        low, high = _reach(figure.value, figure.half, figure.bound, exactly=exactly)
        low_raw, high_raw = _reach(figure.raw, figure.half_raw, figure.bound, exactly=exactly)
        if not figure.family:
            if figure.value != figure.raw:  # 45k
                return _has(self._raws, low, high)
            return _has(self._raws, low_raw, high_raw)
        if _has(self._families.get(figure.family, ()), low, high):
            return True
        if figure.family == "factor":  # "restarted 14 times" is a count
            raw = abs(figure.raw)
            return figure.text.endswith("times") and _has(
                self._raws, raw * (1 - 1e-6), raw * (1 + 1e-6)
            )
        return _has(self._plain, low_raw, high_raw)


def _reach(value: float, half: float, bound: int, *, exactly: bool) -> tuple[float, float]:
    value = abs(value)
    tiny = value * 1e-6 + 1e-15
    if bound > 0:
        return value - tiny, value * _BOUND_REACH
    if bound < 0:
        return value / _BOUND_REACH, value + tiny
    half = tiny if exactly else half + tiny
    return value - half, value + half


def _has(values: "list[float] | tuple[()]", low: float, high: float) -> bool:
    at = bisect_left(values, low)
    return at < len(values) and values[at] <= high
