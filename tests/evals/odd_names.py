"""Five systems whose names no convention knows, each healthy and with faults that are easy to miss.

`write_odd` writes a pack of them. Only the shape of the values can show what is wrong.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.evals.signals import NOW, Of, Row, Stack, since

SET: Final = "odd"
_RECENT, _HOURS = 20.0, 200.0
_PARTS: Final = ("north", "south", "east", "west", "upper", "lower")


@dataclass(frozen=True)
class Odd:
    """The label that holds the service, the services, and the names of what they measure.

    `whole` is the measure of a share: 1 or 100. `second` is how much of the unit of durations is one.
    """

    label: str
    services: tuple[str, ...]
    done: str
    lag: str
    bad: str
    good: str
    used: str
    stock: str
    part: str
    whole: float = 1.0
    second: float = 1.0


SYSTEMS: Final[Mapping[str, Odd]] = {
    "dome": Odd(
        "dome", ("altair", "deneb", "vega", "mizar"), "plates_exposed", "slew_p90", "spoiled",
        "in_focus", "motor_duty", "cryo_k", "filter",
    ),
    "vat": Odd(
        "vat", ("mash-1", "lauter", "kettle.b"), "Litres.Out", "settle_ms", "sourPct",
        "clearPct", "heatPct", "foam", "tap", whole=100.0, second=1000.0,
    ),
    "quay": Odd(
        "quay", ("q7", "q8", "q9", "q10", "q11"), "boxes", "berth_wait", "dropped", "on_time",
        "crane", "yard_n", "line",
    ),
    "loom": Odd(
        "shed", ("warp", "weft", "dye"), "picks_sum", "doff_us", "knots", "even", "spindle",
        "bobbins", "order", second=1e6,
    ),
    "ward": Odd(
        "unit_of", ("intake", "triage-b", "lab", "x-ray"), "seen", "stay_p99", "redo_pc",
        "first_time_pc", "beds_pc", "linen", "insurer", whole=100.0,
    ),
}  # fmt: skip


@dataclass
class _Fault:
    """What differs for the first service; and for all of them with `everywhere`."""

    done: Callable[[float], Of] = lambda usual: lambda _: usual
    lag: Callable[[float], Of] = lambda usual: lambda _: usual
    bad: Callable[[float], Of] = lambda usual: lambda _: usual
    good: Callable[[float], Of] = lambda usual: lambda _: usual
    used: Callable[[float], Of] = lambda usual: lambda _: usual
    of_part: bool = False  # of one part of six alone
    ends: float = 0.0  # minutes before now without samples of all
    stock_ends: float = 0.0
    down: float = 0.0
    everywhere: bool = False


def _to(age: float, value: float) -> Callable[[float], Of]:
    return lambda usual: since(age, usual, value)


def _by(age: float, times: float) -> Callable[[float], Of]:
    return lambda usual: since(age, usual, usual * times)


_ALWAYS: Final = 1e9
FAULTS: Final[Mapping[str, _Fault]] = {
    **{
        f"{kind}-{name}": fault
        for name, age in (("new", _RECENT), ("hours", _HOURS))
        for kind, fault in {
            "outage": _Fault(done=_to(age, 0.0), everywhere=True),
            "target-down": _Fault(down=age, ends=age),
            "ends": _Fault(ends=age),
            "stock-ends": _Fault(stock_ends=age),
            "bad-inverts": _Fault(bad=_to(age, 0.998)),
            "good-inverts": _Fault(good=_to(age, 0.003)),
            "part-gone": _Fault(done=_to(age, 0.0), of_part=True),
            "part-slow": _Fault(lag=_by(age, 8.0), of_part=True),
            "slow": _Fault(lag=_by(age, 6.0)),
            "full": _Fault(used=_to(age, 1.0)),
        }.items()
    },
    "full-always": _Fault(used=_to(_ALWAYS, 1.0)),
    "few-bad-always": _Fault(bad=_to(_ALWAYS, 0.03)),
    "some-bad-always": _Fault(bad=_to(_ALWAYS, 0.3)),
    "less-good-always": _Fault(good=_to(_ALWAYS, 0.9)),
}


def _of_service(stack: Stack, odd: Odd, name: str, number: int, fault: _Fault) -> None:
    of, whole = {odd.label: name}, odd.whole
    until = fault.ends
    for place, part in enumerate(_PARTS):
        changed = fault if place == 1 or not fault.of_part else _Fault()
        labels = {**of, odd.part: part}
        rate = changed.done(3.0 + number + place)
        stack.counter(odd.done, labels, rate, until=until)
        lag = changed.lag(odd.second * (0.05 + 0.02 * number))
        stack.gauge(odd.lag, labels, lag, 0.08, until=until)
    stack.gauge(odd.bad, of, _scaled(fault.bad(0.002), whole), 0.3, until=until, most=whole)
    good = fault.good(0.9985)
    stack.gauge(odd.good, of, _scaled(good, whole), 0.0005, until=until, most=whole)
    used = fault.used(0.2 + 0.03 * number)
    stack.gauge(odd.used, of, _scaled(used, whole), 0.08, until=until, most=whole)
    stock_until = max(until, fault.stock_ends)
    stack.gauge(odd.stock, of, lambda _: 70.0 + 9 * number, 0.04, until=stock_until)
    stack.gauge("up", of, since(fault.down or -1.0, 1.0, 0.0), 0.0)


def _scaled(value: Of, whole: float) -> Of:
    return lambda before: whole * value(before)


def write_odd(folder: Path) -> None:
    """Each system healthy, and with each of the faults."""
    for system, odd in SYSTEMS.items():
        for kind, fault in {"healthy": _Fault(), **FAULTS}.items():
            _write(folder / SET / f"{system}-{kind}", system, odd, kind, fault)


def _write(place: Path, system: str, odd: Odd, kind: str, fault: _Fault) -> None:
    stack = Stack(f"{system}/{kind}", length=30 * 60)
    for number, name in enumerate(odd.services):
        _of_service(stack, odd, name, number, fault if not number or fault.everywhere else _Fault())
    place.mkdir(parents=True)
    about: Row = {
        "id": f"{SET}-{system}-{kind}",
        "set": SET,
        "asked": "is anything wrong?",
        "now": NOW.isoformat(),
        "products": list(odd.services),
    }
    is_healthy = kind == "healthy"
    culprit = odd.services if fault.everywhere else odd.services[:1]
    truth: Row = {
        "healthy": is_healthy,
        "culprit": [] if is_healthy else list(culprit),
        "suite": kind,
        "kind": kind,
    }
    (place / "case.json").write_text(json.dumps(about))
    (place / "truth.json").write_text(json.dumps(truth))
    (place / "metrics.ndjson").write_text("\n".join(map(json.dumps, stack.series)))
