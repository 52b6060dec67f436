"""Figures as people on call say them: 1.7 s, 210 ms, 7.4 %, 1.2 GB. Only rounded, never made up."""

from collections.abc import Sequence
from typing import Final

SHARES: Final = frozenset({"ratio", "fraction", "share"})
# For each family its units from large to small, each with its factor to the tool's unit.
_TIME: Final[Sequence[tuple[str, float]]] = ((" s", 1.0), (" ms", 1e-3))
_BYTES: Final[Sequence[tuple[str, float]]] = (
    (" GB", 1e9), (" MB", 1e6), (" kB", 1e3), (" bytes", 1.0),
)  # fmt: skip
_AS_TOLD: Final = {
    "percent": " %",
    "per second": "/s",
    "requests/s": "/s",
    "millicores": " millicores",
    "cores": " cores",
}
_MILLISECONDS: Final = frozenset({"milliseconds", "ms"})
_DIGITS: Final = (2, 3, 4)


def in_words(value: float, beside: float, unit: str) -> tuple[str, str]:
    """Two figures of one unit, with as few digits as distinguish them."""
    scale = _scale(unit.lower())
    size = 1e-3 if unit.lower() in _MILLISECONDS else 1.0
    one, other = value * size, beside * size
    larger = _named(max(abs(one), abs(other)), scale)
    units = [
        larger if abs(each) >= larger[1] * 0.1 else _named(each, scale) for each in (one, other)
    ]
    words = ("", "")
    for digits in _DIGITS:
        words = _written(one, units[0], digits), _written(other, units[1], digits)
        if words[0] != words[1]:
            break
    return words


def figure(value: float) -> str:
    return _rounded(value, 3)


def _scale(unit: str) -> Sequence[tuple[str, float]]:
    if unit in SHARES:
        return ((" %", 0.01),)
    if unit in {"seconds", "s"} | _MILLISECONDS:
        return _TIME
    if unit in {"bytes", "by"}:
        return _BYTES
    return ((_AS_TOLD.get(unit, ""), 1.0),)


def _named(value: float, scale: Sequence[tuple[str, float]]) -> tuple[str, float]:
    return next((one for one in scale if abs(value) >= one[1]), scale[-1])


def _written(value: float, unit: tuple[str, float], digits: int) -> str:
    return _rounded(value / unit[1], digits) + unit[0]


def _rounded(value: float, digits: int) -> str:
    """Never in powers of ten, and integers are not cut: 1,234, 496, 65, 7.4, 0.45."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    whole = len(f"{abs(value):.0f}") if abs(value) >= 1 else 0
    return f"{value:.0f}" if whole > digits else f"{value:.{max(digits, whole)}g}"
