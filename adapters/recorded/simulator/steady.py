"""How each service behaves, without noise, when a fault has grown to some intensity.

Latency and errors climb from the leaves to the front door; request rates go down the other way.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from adapters.recorded.simulator.scenario import Fault
from adapters.recorded.simulator.topology import BY_NAME, Call, calls_of, leaves_first

_TAIL = 3.2  # p99 over median of a service's own time
_RETRY_LEAK = 0.55  # share of a dependency's failures that one retry does not hide


@dataclass(frozen=True, slots=True)
class State:
    """A service at one intensity. `rate` is its requests per request at the front door."""

    p50_ms: float
    p99_ms: float
    error_ratio: float
    rate: float


def solve(fault: Fault | None, intensity: float) -> Mapping[str, State]:
    states: dict[str, State] = {}
    for name in leaves_first():
        states[name] = _latency_and_errors(name, states, fault, intensity)
    rates = _rates(states, fault, intensity)
    return {
        name: State(state.p50_ms, state.p99_ms, state.error_ratio, rates[name])
        for name, state in states.items()
    }


def times(call: Call, caller: str, fault: Fault | None, intensity: float) -> float:
    """How often a caller makes a call, with the fault's extra calls."""
    if fault is None or fault.service != caller:
        return float(call.times)
    return call.times + fault.extra_calls.get(call.target, 0) * intensity


def _latency_and_errors(
    name: str, known: Mapping[str, State], fault: Fault | None, intensity: float
) -> State:
    service = BY_NAME[name]
    own_ms, errors = service.self_ms, service.error_ratio
    if fault is not None and fault.service == name:
        own_ms += fault.added_self_ms * intensity
        errors += fault.added_error_ratio * intensity
    typical_ms, slow_path_ms, tail_ms = own_ms, own_ms * (_TAIL - 1.0) * 0.6 + own_ms, 0.0
    for call in calls_of(name):
        target = known[call.target]
        count = times(call, name, fault, intensity)
        typical_ms += call.share * count * target.p50_ms if call.share >= 0.5 else 0.0
        slow_path_ms += count * target.p50_ms
        tail_ms = max(tail_ms, target.p99_ms - target.p50_ms)
        errors += call.share * call.times * target.error_ratio * _RETRY_LEAK
    return State(typical_ms, slow_path_ms + tail_ms, min(errors, 1.0), 0.0)


def _rates(
    states: Mapping[str, State], fault: Fault | None, intensity: float
) -> Mapping[str, float]:
    rates = dict.fromkeys(states, 0.0)
    rates["web"] = 1.0
    for name in reversed(leaves_first()):
        for call in calls_of(name):
            retried = 1.0 + states[call.target].error_ratio
            count = times(call, name, fault, intensity)
            rates[call.target] += rates[name] * call.share * count * retried
    return rates
