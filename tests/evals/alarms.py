"""Generated systems with one fault of any age, and healthy ones with the noise of real ones.

Names, label, units, noise and rhythm are drawn by chance: an answer should not depend on any of them.
`write_alarms` writes a pack of faults and one of healthy systems.
"""

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.evals.signals import NOW, Row

SET: Final = "alarms"
_DAY: Final = 24 * 60  # minutes
_SYLLABLES: Final = ("ba", "cor", "de", "fi", "gol", "hu", "ja", "kel", "mo", "nar", "pi", "tus")
_LABELS: Final = ("service", "svc", "app", "job")
_QUESTIONS: Final = ("is anything wrong?", "is {} all right?", "users complain about {}, why?")
# Of each role one name that conventions know, and one that they do not.
_NAMES: Final[Mapping[str, Sequence[str]]] = {
    "traffic": ("http_requests_total", "hits_seen"),
    "latency": ("http_request_duration_seconds_p99", "rt_slow"),
    "errors": ("http_errors_ratio", "bad_part"),
    "cpu": ("process_cpu_usage", "busy_part"),
    "memory": ("process_resident_memory_bytes", "held_octets"),
    "pool": ("db_pool_usage_ratio", "conns_part"),
    "queue": ("job_queue_length", "waiting_n"),
    "done": ("jobs_done_total", "finished_n"),
}

Value = Callable[[float], float | None]  # of the minutes before now; None: no sample
Change = Callable[[float, float], float | None]  # of the usual value and the minutes before now


@dataclass
class System:
    """Services with series of each role, and what was changed about them."""

    by_chance: random.Random
    minutes: int
    every: int
    label: str = ""
    style: int = 0
    services: list[str] = field(default_factory=list)
    changes: dict[tuple[str, str], Change] = field(default_factory=dict)
    rough: Mapping[str, float] = field(default_factory=dict)  # noise of a role, beside the usual
    rhythm: float = 0.0
    peak: float = 0.0
    pods: int = 1

    @property
    def ill(self) -> str:
        """The service that a fault is in."""
        return self.services[0]

    def change(self, role: str, how: Change, service: str = "") -> None:
        """Change a series. A pod is named `service/number`."""
        self.changes[service or self.ill, role] = how


def drawn(kind: str, seed: int) -> System:
    """A system by chance, without a fault."""
    by_chance = random.Random(f"alarms/{kind}/{seed}")
    is_coarse = by_chance.random() < 0.25
    system = System(
        by_chance,
        minutes=8 * _DAY if is_coarse else by_chance.choice((26 * 60, 34 * 60, 50 * 60)),
        every=5 if is_coarse else 1,
        label=by_chance.choice(_LABELS),
        style=by_chance.choice((0, 0, 1)),
        rhythm=by_chance.choice((0.0, 0.3, 0.6)),
        peak=by_chance.uniform(0, _DAY),
    )
    while len(system.services) < by_chance.randint(3, 6):
        name = "".join(by_chance.choice(_SYLLABLES) for _ in range(3))
        if name not in system.services:
            system.services.append(name)
    return system


# -- faults -------------------------------------------------------------------------------------


def _since(minutes: float, then: Change) -> Change:
    return lambda usual, before: then(usual, before) if before <= minutes else usual


def _times(by: float) -> Change:
    return lambda usual, _: usual * by


def _at(value: float | None) -> Change:
    return lambda _usual, _before: value


def _ramp(minutes: float, to: float) -> Change:
    """From the usual value to `to` times it within so many minutes before now."""
    return lambda usual, before: usual * (1 + (to - 1) * max(0.0, 1 - before / minutes))


_RECENT, _HOURS, _LONG, _ALWAYS = 23.0, 190.0, 560.0, 1e9
_AGES: Final = {"new": _RECENT, "hours": _HOURS, "long": _LONG, "always": _ALWAYS}


def _one(role: str, age: float, how: Change) -> Callable[[System], None]:
    return lambda system: system.change(role, _since(age, how))


def _fails_and_slow(age: float) -> Callable[[System], None]:
    def apply(system: System) -> None:
        system.change("errors", _since(age, _at(0.38)))
        system.change("latency", _since(age, _times(6)))

    return apply


def _silent(age: float, roles: Sequence[str]) -> Callable[[System], None]:
    def apply(system: System) -> None:
        for role in roles:
            system.change(role, _since(age, _at(None)))

    return apply


def _silent_pod(age: float) -> Callable[[System], None]:
    def apply(system: System) -> None:
        system.pods = 3
        for role in ("traffic", "latency", "errors", "cpu", "memory"):
            system.change(role, _since(age, _at(None)), f"{system.ill}/1")

    return apply


def _idle_pod(age: float) -> Callable[[System], None]:
    def apply(system: System) -> None:
        system.pods = 3
        system.change("traffic", _since(age, _at(0.0)), f"{system.ill}/1")

    return apply


def _all_down(age: float, how: Change) -> Callable[[System], None]:
    def apply(system: System) -> None:
        for name in system.services:
            system.change("traffic", _since(age, how), name)

    return apply


def _down(age: float) -> Callable[[System], None]:
    def apply(system: System) -> None:
        system.change("up", _since(age, _at(0.0)))
        for role in ("traffic", "latency", "errors", "cpu", "memory", "pool", "queue", "done"):
            system.change(role, _since(age, _at(None)))

    return apply


def _no_peak(system: System) -> None:
    """Traffic of every day rises steeply an hour ago; today it stays where it was."""
    system.peak, system.rhythm = 0.0, 0.0
    system.minutes, system.every = 8 * _DAY, 5

    def day(usual: float, before: float) -> float:
        into = (before + 1) % _DAY  # 0 is this time of the day
        is_peak = into < 75 or into > _DAY - 360
        return usual * (4.0 if is_peak and before > 120 else 1.0)

    for name in system.services:
        system.change("traffic", day, name)
    system.change("traffic", lambda usual, before: day(usual, before) if before > 120 else usual)
    for name in system.services[1:]:
        system.change("traffic", _daily(day), name)


def _daily(day: Change) -> Change:
    return lambda usual, before: day(usual, before + _DAY)


_FAULTS: Final[Mapping[str, Callable[[System], None]]] = {
    **{f"slow-{age}": _one("latency", at, _times(6)) for age, at in list(_AGES.items())[:3]},
    **{f"slower-{age}": _one("latency", at, _times(2.2)) for age, at in list(_AGES.items())[:3]},
    **{f"fails-{age}": _one("errors", at, _at(0.38)) for age, at in _AGES.items()},
    **{f"fails-some-{age}": _one("errors", at, _at(0.08)) for age, at in _AGES.items()},
    **{f"fails-and-slow-{age}": _fails_and_slow(at) for age, at in _AGES.items()},
    **{f"down-{age}": _down(at) for age, at in _AGES.items()},
    **{f"no-traffic-{age}": _one("traffic", at, _at(0.0)) for age, at in list(_AGES.items())[:3]},
    **{
        f"half-traffic-{age}": _one("traffic", at, _times(0.4))
        for age, at in list(_AGES.items())[:3]
    },
    **{f"all-traffic-{age}": _all_down(at, _at(0.0)) for age, at in list(_AGES.items())[:3]},
    "all-traffic-ended": _all_down(_RECENT, _at(None)),
    **{
        f"ended-{age}": _silent(at, ("traffic", "latency", "errors", "cpu", "memory"))
        for age, at in list(_AGES.items())[:3]
    },
    **{f"gauge-ended-{age}": _silent(at, ("fill",)) for age, at in list(_AGES.items())[:3]},
    **{f"stopped-{age}": _one("done", at, _at(0.0)) for age, at in list(_AGES.items())[:3]},
    **{f"silent-pod-{age}": _silent_pod(at) for age, at in list(_AGES.items())[:3]},
    **{f"idle-pod-{age}": _idle_pod(at) for age, at in list(_AGES.items())[:3]},
    "queue-grows-40m": _one("queue", _ALWAYS, _ramp(40, 9000)),
    "queue-grows-4h": _one("queue", _ALWAYS, _ramp(240, 9000)),
    "queue-grows-20h": _one("queue", _ALWAYS, _ramp(1200, 900)),
    "leak-5h": _one("memory", _ALWAYS, _ramp(300, 4)),
    "leak-20h": _one("memory", _ALWAYS, _ramp(1200, 5)),
    **{f"pool-full-{age}": _one("pool", at, _at(0.98)) for age, at in _AGES.items()},
    **{f"cpu-full-{age}": _one("cpu", at, _at(0.97)) for age, at in _AGES.items()},
    **{f"fill-stuck-{age}": _one("fill", at, _times(8)) for age, at in list(_AGES.items())[:3]},
    "no-peak": _no_peak,
}


# -- healthy ------------------------------------------------------------------------------------


def _plain(_system: System) -> None:
    pass


def _noisy(system: System) -> None:
    system.rough = {"latency": 0.35, "traffic": 0.25, "errors": 0.9, "queue": 0.8, "cpu": 0.3}


def _rhythmic(system: System) -> None:
    system.rhythm = 0.85


def _spiky(system: System) -> None:
    """A few spikes an hour in latency and load, as of garbage collection and batch jobs."""
    by_chance = system.by_chance

    def spikes(usual: float, _before: float) -> float:
        return usual * (by_chance.uniform(2, 5) if by_chance.random() < 0.04 else 1)

    for name in system.services:
        for role in ("latency", "cpu", "queue"):
            system.change(role, spikes, name)


def _batches(system: System) -> None:
    """A batch of ten minutes each hour."""

    def batch(usual: float, before: float) -> float:
        return usual * (6 if (before + 7) % 60 < 10 else 1)

    for role in ("traffic", "cpu", "queue", "done"):
        system.change(role, batch)


def _sawtooth(system: System) -> None:
    """Memory is collected every few hours."""
    for name in system.services:
        long = system.by_chance.uniform(50, 400)

        def collected(usual: float, before: float, long: float = long) -> float:
            return usual * (1 + 0.8 * (1 - before % long / long))

        system.change("memory", collected, name)


def _rare_errors(system: System) -> None:
    """Failures come in small bursts, as always."""
    by_chance = system.by_chance

    def bursts(_usual: float, _before: float) -> float:
        return by_chance.uniform(0.001, 0.012) if by_chance.random() < 0.1 else 0.0

    for name in system.services:
        system.change("errors", bursts, name)


def _wandering(system: System) -> None:
    """Load that goes up and down slowly, with no rhythm of a day."""
    for name in system.services:
        phases = [system.by_chance.uniform(0, 6.3) for _ in range(3)]

        def wander(usual: float, before: float, phases: Sequence[float] = tuple(phases)) -> float:
            periods = (97.0, 223.0, 410.0)
            moved = sum(
                math.sin(before / p * 6.3 + f) for p, f in zip(periods, phases, strict=True)
            )
            return usual * (1 + 0.12 * moved)

        for role in ("traffic", "cpu", "latency", "pool"):
            system.change(role, wander, name)


def _little_used(system: System) -> None:
    """A service that gets a request now and then."""
    by_chance = system.by_chance
    system.change("traffic", lambda _u, _b: 0.1 if by_chance.random() < 0.3 else 0.0)
    system.change("errors", lambda _u, _b: 0.0)


def _rolled_out(system: System) -> None:
    """Pods were replaced half a day and half an hour ago: series end, and new ones begin."""
    system.pods = 4
    for role in ("traffic", "latency", "errors", "cpu", "memory"):
        for old, new in ((0, 2), (1, 3)):
            system.change(role, _since(25, _at(None)), f"{system.ill}/{old}")
            system.change(
                role, lambda usual, before: usual if before <= 25 else None, f"{system.ill}/{new}"
            )


def _flat(system: System) -> None:
    """Some series never change, as of a service that is at rest."""
    for role in ("queue", "errors", "fill"):
        system.change(role, _at(0.0))


_HEALTHY: Final[Mapping[str, Callable[[System], None]]] = {
    "plain": _plain,
    "noisy": _noisy,
    "rhythmic": _rhythmic,
    "spiky": _spiky,
    "batches": _batches,
    "sawtooth": _sawtooth,
    "rare-errors": _rare_errors,
    "wandering": _wandering,
    "little-used": _little_used,
    "rolled-out": _rolled_out,
    "flat": _flat,
}
FAULTS: Final = tuple(_FAULTS)
HEALTHY: Final = tuple(_HEALTHY)

# -- series -------------------------------------------------------------------------------------

_LEVELS: Final[Mapping[str, tuple[float, float, float]]] = {  # from, to, noise
    "traffic": (3.0, 400.0, 0.06),
    "latency": (0.04, 0.6, 0.08),
    "errors": (0.0005, 0.004, 0.4),
    "cpu": (0.1, 0.4, 0.08),
    "memory": (2e8, 3e9, 0.01),
    "pool": (0.1, 0.4, 0.06),
    "queue": (4.0, 30.0, 0.25),
    "done": (0.5, 20.0, 0.08),
    "fill": (5.0, 9000.0, 0.04),
}
_COUNTED: Final = frozenset({"traffic", "done"})
_OF_PODS: Final = frozenset({"traffic", "latency", "errors", "cpu", "memory"})
_WITH_LOAD: Final = frozenset({"traffic", "cpu", "pool", "done"})


def _series(system: System) -> list[Row]:
    found: list[Row] = []
    fill = "".join(system.by_chance.choice(_SYLLABLES) for _ in range(2)) + "_now"
    for service in system.services:
        for role in _LEVELS:
            if role == "done" and service not in system.services[:2]:
                continue
            pods = system.pods if role in _OF_PODS and service == system.ill else 1
            for number in range(pods):
                labels = {system.label: service}
                if pods > 1:
                    labels["pod"] = f"{service}-{number}"
                found.append(_read(system, service, role, labels, number, fill))
        if ("up" in {role for _, role in system.changes}) or system.style == 0:
            found.append(_read(system, service, "up", {system.label: service}, 0, fill))
    return [one for one in found if one["points"]]


def _read(
    system: System, service: str, role: str, labels: Mapping[str, str], number: int, fill: str
) -> Row:
    by_chance = random.Random(f"{system.by_chance.random()}/{service}/{role}/{number}")
    low, high, noise = _LEVELS.get(role, (1.0, 1.0, 0.0))
    alike = random.Random(f"{system.services}/{service}/{role}")  # of all pods of a service
    level = math.exp(alike.uniform(math.log(low), math.log(high)))
    noise = system.rough.get(role, noise)
    change = system.changes.get((f"{service}/{number}", role)) or system.changes.get(
        (service, role)
    )
    points: list[tuple[float, float]] = []
    total = 0.0
    for before in range(system.minutes, -1, -system.every):
        rhythm = 1.0
        if role in _WITH_LOAD:
            rhythm += system.rhythm * math.cos(2 * math.pi * (before - system.peak) / _DAY)
        usual: float | None = level * rhythm * max(0.0, 1 + by_chance.gauss(0, noise))
        if change is not None:
            usual = change(usual or 0.0, before)
        if usual is None:
            continue
        if role in _COUNTED:
            total += usual * 60 * system.every
        shown = round(total, 2) if role in _COUNTED else float(f"{usual:.5g}")
        points.append((NOW.timestamp() - before * 60, shown))
    name = {"fill": fill, "up": "up"}.get(role) or _NAMES[role][system.style]
    return {"name": name, "labels": dict(labels), "points": [list(one) for one in points]}


def write_alarm(folder: Path, kind: str, seed: int) -> Path:
    """One case as a folder of files. `kind` is of FAULTS or of HEALTHY."""
    system = drawn(kind, seed)
    is_fault = kind in _FAULTS
    (_FAULTS if is_fault else _HEALTHY)[kind](system)
    place = folder / SET / f"{kind}-{seed}"
    place.mkdir(parents=True)
    products = sorted(system.services)
    asked = system.by_chance.choice(_QUESTIONS).format(system.ill)
    about: Row = {
        "id": f"{SET}-{kind}-{seed}",
        "set": SET,
        "asked": asked,
        "now": NOW.isoformat(),
        "products": list(products),
    }
    culprit = products if kind.startswith("all-traffic") else [system.ill]
    truth: Row = {
        "healthy": not is_fault,
        "culprit": list(culprit) if is_fault else [],
        "suite": kind,
        "kind": kind,
    }
    rows = _series(system)
    (place / "case.json").write_text(json.dumps(about))
    (place / "truth.json").write_text(json.dumps(truth))
    (place / "metrics.ndjson").write_text("\n".join(map(json.dumps, rows)))
    return place


def write_alarms(folder: Path, seeds: int) -> None:
    """Each fault and each healthy system with so many seeds."""
    for seed in range(seeds):
        for kind in (*FAULTS, *HEALTHY):
            write_alarm(folder, kind, seed)
