"""Metric series of a service at 60 s: the steady state, the daily load, and noise on top."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from math import cos, log, sin, sqrt, tau
from random import Random

from adapters.recorded.simulator.scenario import Fault
from adapters.recorded.simulator.seeded import load, stream
from adapters.recorded.simulator.steady import State, solve
from adapters.recorded.simulator.topology import PEAK_REQUESTS_PER_SECOND, Service

STEP_S = 60
_LEVELS = 20  # a fault's growth is drawn in so many steps

_REQUEST_METRICS = (
    "http_requests_per_second",
    "http_request_duration_seconds_p50",
    "http_request_duration_seconds_p99",
    "http_request_error_ratio",
)
_HOST_METRICS = ("cpu_utilization_ratio", "memory_utilization_ratio")
_DATASTORE_METRICS = ("db_connections_in_use_ratio", "db_query_duration_seconds_p99")


def metrics_of(service: Service) -> tuple[str, ...]:
    return (_DATASTORE_METRICS if service.datastore else _REQUEST_METRICS) + _HOST_METRICS


@dataclass(frozen=True, slots=True)
class Moment:
    """What a value is computed from: the load, the fault's growth, and the steady states by service."""

    load: float
    intensity: float
    states: Mapping[str, State]


_Formula = Callable[[Service, Fault | None, Moment], float]


class Moments:
    """The moments under one fault, STEP_S apart; `at` computes each when it is first asked for."""

    def __init__(self, fault: Fault | None, start_s: int) -> None:
        self.fault = fault
        self._start_s = start_s
        self.at = cache(self._at)
        self._states = cache(self._states_at)

    def _at(self, step: int) -> Moment:
        at_s = self._start_s + step * STEP_S
        intensity = self.fault.intensity(at_s) if self.fault is not None else 0.0
        return Moment(load(at_s), intensity, self._states(round(intensity * _LEVELS)))

    def _states_at(self, level: int) -> Mapping[str, State]:
        return solve(self.fault, level / _LEVELS)


class Values:
    """A metric of one service: the same values for the same arguments, in any order of asking."""

    def __init__(self, seed: str, service: Service, metric: str, moments: Moments) -> None:
        self._formula, wobble = _FORMULAS[metric]
        self._service = service
        self._moments = moments
        self._noise = _noise(stream(seed, service.name, metric), wobble)
        self._drawn: list[float] = []  # the noise until the last step that was asked for

    def at(self, places: Sequence[tuple[float, int]]) -> Sequence[tuple[float, float]]:
        """Each instant with its value, for instants with their steps."""
        missing = max((step for _, step in places), default=-1) + 1 - len(self._drawn)
        if missing > 0:
            self._drawn.extend(islice(self._noise, missing))
        formula, service, drawn = self._formula, self._service, self._drawn
        fault, moment_at = self._moments.fault, self._moments.at
        return [
            (at_s, max(0.0, formula(service, fault, moment_at(step)) * drawn[step]))
            for at_s, step in places
        ]


def _noise(random: Random, wobble: float) -> Iterator[float]:
    """Multipliers around 1 that remember the last minute, as real load does."""
    # As `Random.gauss` draws them, two at a time: a question draws 100,000.
    draw, level = random.random, 0.0
    while True:
        angle = draw() * tau
        radius = sqrt(-2.0 * log(1.0 - draw()))
        level = 0.6 * level + cos(angle) * radius * wobble
        yield 1.0 + level
        level = 0.6 * level + sin(angle) * radius * wobble
        yield 1.0 + level


def _own(service: Service, fault: Fault | None, moment: Moment) -> float:
    return moment.intensity if fault is not None and fault.service == service.name else 0.0


def _rate(service: Service, _fault: Fault | None, moment: Moment) -> float:
    return PEAK_REQUESTS_PER_SECOND * moment.load * moment.states[service.name].rate


def _p50(service: Service, _fault: Fault | None, moment: Moment) -> float:
    return moment.states[service.name].p50_ms / 1000.0 * (0.94 + 0.12 * moment.load)


def _p99(service: Service, _fault: Fault | None, moment: Moment) -> float:
    return moment.states[service.name].p99_ms / 1000.0 * (0.86 + 0.22 * moment.load)


def _errors(service: Service, _fault: Fault | None, moment: Moment) -> float:
    return min(1.0, moment.states[service.name].error_ratio)


def _cpu(service: Service, fault: Fault | None, moment: Moment) -> float:
    added = fault.added_cpu_ratio * _own(service, fault, moment) if fault is not None else 0.0
    return min(0.99, service.cpu_ratio * (0.35 + 0.65 * moment.load) + added)


def _memory(service: Service, _fault: Fault | None, moment: Moment) -> float:
    return min(0.99, service.memory_ratio * (0.96 + 0.06 * moment.load))


def _connections(service: Service, fault: Fault | None, moment: Moment) -> float:
    healthy = 0.25 + 0.3 * moment.load
    if fault is None or fault.connections_ratio is None:
        return healthy
    return healthy + (fault.connections_ratio - healthy) * _own(service, fault, moment)


# Per metric: the formula, and the standard deviation of its minute-to-minute noise.
_FORMULAS: Mapping[str, tuple[_Formula, float]] = {
    "http_requests_per_second": (_rate, 0.025),
    "http_request_duration_seconds_p50": (_p50, 0.02),
    "http_request_duration_seconds_p99": (_p99, 0.05),
    "http_request_error_ratio": (_errors, 0.16),
    "cpu_utilization_ratio": (_cpu, 0.025),
    "memory_utilization_ratio": (_memory, 0.006),
    "db_connections_in_use_ratio": (_connections, 0.003),
    "db_query_duration_seconds_p99": (_p99, 0.05),
}
