"""Which signals core__sweep_metrics reads, and at what step."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from statistics import median
from typing import Final

from tools.core.metric_gaps import tells_absence
from tools.signals import Discovered, Role, Signal

LEAST_STEP_S: Final = 60.0
_FINEST_STEP_S: Final = 5.0  # of young data
MOST_SIGNALS: Final = 120
MOST_SERIES: Final = 4000  # of all products: what a backend in trouble can still answer
_EACH: Final[Mapping[Role, int]] = {"other": 40, "network": 2}  # of a role and product
_USUAL_EACH: Final = 3


def chosen(found: Discovered) -> Sequence[Signal]:
    """The most important of each role and product, at most MOST_SIGNALS in all."""
    wanted: dict[str, tuple[int, int, Signal]] = {}
    for product in found.products:
        taken: dict[Role, int] = {}
        for signal in found.of(product):
            number = taken.get(signal.role, 0)
            if number < _EACH.get(signal.role, _USUAL_EACH) or tells_absence(signal):
                taken[signal.role] = number + 1
                best = wanted.get(signal.name, (number, 0, signal))
                wanted[signal.name] = min(best[0], number), best[1] + 1, signal
    ordered = sorted(wanted.values(), key=lambda one: (one[0], one[2].rank, -one[1], one[2].name))
    sizes = accumulate(len(signal.places) for _, _, signal in ordered)
    fitting = zip(ordered[:MOST_SIGNALS], sizes, strict=False)
    return [
        one[2] for number, (one, size) in enumerate(fitting) if size <= MOST_SERIES or not number
    ]


def step_of(signals: Sequence[Signal]) -> float:
    """Seconds between two values of a sweep: never finer than the samples lie apart."""
    spacings = [one.spacing_s for one in signals if one.spacing_s]
    return max(LEAST_STEP_S, median(spacings) if spacings else LEAST_STEP_S)


def fine_step_of(signals: Sequence[Signal]) -> float:
    """The same for data of a few minutes, which a minute's step would show in a few values."""
    spacings = [one.spacing_s for one in signals if one.spacing_s]
    return max(_FINEST_STEP_S, median(spacings) if spacings else LEAST_STEP_S)
