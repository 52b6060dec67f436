"""The label that explains a change: the series with one of its values changed, and the rest did
not.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

Labels = Mapping[str, str]

_FEWEST: Final = 2  # distinct values of a label
# If several labels explain it equally, the one that people look for first.
_FIRST: Final = ("pod", "instance", "node", "zone", "region")


@dataclass(frozen=True, slots=True)
class Explained:
    """All series with this value of `label` changed, and the rest did not.

    The label has `values` in all.
    """

    label: str
    value: str
    values: int


def explaining_label(series: Sequence[tuple[Labels, bool]]) -> Explained | None:
    """Of series with their labels and whether each moved. None where no single value explains it."""
    if not any(moved for _, moved in series) or all(moved for _, moved in series):
        return None
    by_label: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for labels, moved in series:
        for label, value in labels.items():
            by_label[label][value].append(moved)
    found = [
        one for label, values in by_label.items() if (one := _explained(label, values, series))
    ]
    return min(found, key=_order, default=None)


def _explained(
    label: str, values: Mapping[str, Sequence[bool]], series: Sequence[tuple[Labels, bool]]
) -> Explained | None:
    if len(values) < _FEWEST or sum(map(len, values.values())) < len(series):
        return None
    moved = [value for value, these in values.items() if any(these)]
    if len(moved) != 1 or not all(values[moved[0]]):
        return None
    return Explained(label, moved[0], len(values))


def _order(one: Explained) -> tuple[int, int, str]:
    first = _FIRST.index(one.label) if one.label in _FIRST else len(_FIRST)
    return first, one.values, one.label
