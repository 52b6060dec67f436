"""A chart that a person asks for, and what came of it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from bot.domain.chart import Chart
from bot.domain.ids import Person, Place


@dataclass(frozen=True, slots=True)
class ChartRequest:
    person: Person
    place: Place
    metric: str
    product: str
    time_range: str


@dataclass(frozen=True, slots=True)
class Charted:
    """The text suffices without the chart, and says why there is none. Plain Markdown."""

    text: str
    chart: Chart | None = None


# Never raises for a backend that is away. Raises StorageUnavailable.
ChartOf: TypeAlias = Callable[[ChartRequest], Awaitable[Charted]]
