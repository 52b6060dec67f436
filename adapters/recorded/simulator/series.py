"""Metric series of a service at 60 s: the steady state, the daily load, and noise on top."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import cos, log, sin, sqrt, tau
from random import Random

from adapters.recorded.simulator.scenario import Fault
from adapters.recorded.simulator.seeded import load, stream
from adapters.recorded.simulator.steady import State, solve
from adapters.recorded.simulator.topology import PEAK_REQUESTS_PER_SECOND, Service
from tools.dataclass import dataclass

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
    """The metrics a service has."""
    return (_DATASTORE_METRICS if service.datastore else _REQUEST_METRICS) + _HOST_METRICS


@dataclass(frozen=True, slots=True)
class Moment:
    """What a value is computed from: the load, the fault's growth here, and the steady state."""

    load: float
    intensity: float
    state: State


_Formula = Callable[[Service, Fault | None, Moment], float]


def values(
    seed: str, service: Service, metric: str, fault: Fault | None, moments: Sequence[Moment]
) -> Sequence[float]:
    """One value per moment, the same for the same arguments."""
    formula, wobble = _FORMULAS[metric]
    noise = _noise(stream(seed, service.name, metric), wobble)
    return [
        max(0.0, formula(service, fault, moment) * factor)
        for moment, factor in zip(moments, noise, strict=False)
    ]


def moments_of(fault: Fault | None, instants_s: Sequence[int]) -> Mapping[str, Sequence[Moment]]:
    """By service, for instants in seconds since the epoch."""
    states = [solve(fault, level / _LEVELS) for level in range(_LEVELS + 1)]
    intensities = [fault.intensity(at_s) if fault is not None else 0.0 for at_s in instants_s]
    loads = [load(at_s) for at_s in instants_s]
    return {
        name: [
            Moment(load_then, intensity, states[round(intensity * _LEVELS)][name])
            for load_then, intensity in zip(loads, intensities, strict=True)
        ]
        for name in states[0]
    }


def _noise(random: Random, wobble: float) -> Iterable[float]:
    """Multipliers around 1 that remember the last minute, as real load does."""
    # As `Random.gauss` draws them, two at a time: a question draws 120,000.
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


def _rate(_service: Service, _fault: Fault | None, moment: Moment) -> float:
    return PEAK_REQUESTS_PER_SECOND * moment.load * moment.state.rate


def _p50(_service: Service, _fault: Fault | None, moment: Moment) -> float:
    return moment.state.p50_ms / 1000.0 * (0.94 + 0.12 * moment.load)


def _p99(_service: Service, _fault: Fault | None, moment: Moment) -> float:
    return moment.state.p99_ms / 1000.0 * (0.86 + 0.22 * moment.load)


def _errors(_service: Service, _fault: Fault | None, moment: Moment) -> float:
    return min(1.0, moment.state.error_ratio)


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
