"""Shops that name their metrics as they like, with one thing wrong in each, for a real server.

No name, unit or label is one that conventions know. `WORLDS` has them by name.
"""

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

import orjson

Of = Callable[[float], float]  # a value, of the minutes before now

_DAY: Final = 24 * 60
_SHOP: Final = ("storefront", "basket", "ledger", "pricing", "parcels", "searcher", "mailbox")


@dataclass(frozen=True)
class LiveWorld:
    """What a server holds, what people ask, and which answers help.

    `culprits` are names of which the first suspect should be one, and `moved` are series that an
    honest answer without a culprit names. Both are empty where nothing is wrong.
    """

    asked: str
    lines: Sequence[bytes]  # of VictoriaMetrics' /api/v1/import
    culprits: Sequence[str] = ()
    moved: Sequence[str] = ()

    def helps(self, verdict: str, suspects: Sequence[str], answer: str) -> bool:
        if not self.culprits:
            return verdict != "cause" and not suspects
        if verdict == "healthy":
            return False
        if suspects:
            return suspects[0] in self.culprits
        return any(self._is_named(line) for line in _findings(answer))

    def _is_named(self, line: str) -> bool:
        moved = [name.replace("_", " ") for name in self.moved]
        return any(name in line for name in self.culprits) and any(name in line for name in moved)


def _findings(answer: str) -> Sequence[str]:
    lines = [line.removeprefix("- ").replace("_", " ") for line in answer.splitlines()]
    return [line for line in lines if not line.startswith(("looked at", "I could not", "Assumed"))]


@dataclass
class _Server:
    """Series of one world until `now`, in seconds since the epoch. `late_s` is a clock's error."""

    now: int
    seed: str
    lines: list[bytes] = field(default_factory=list)

    def gauge(
        self,
        name: str,
        labels: Mapping[str, str],
        value: Of,
        *,
        noise: float = 0.05,
        minutes: int = 26 * 60,
        every_s: int = 60,
        clock_s: int = 0,
        until: float = 0.0,
    ) -> None:
        """Samples with that share of noise, up to `until` minutes before now."""
        befores, values = self._sampled(name, labels, value, noise, minutes, every_s, until)
        self._add(name, labels, befores, [float(f"{one:.5g}") for one in values], clock_s)

    def counter(
        self,
        name: str,
        labels: Mapping[str, str],
        rate: Of,
        *,
        noise: float = 0.05,
        minutes: int = 26 * 60,
        every_s: int = 60,
        clock_s: int = 0,
        until: float = 0.0,
    ) -> None:
        """Grows by `rate` a second."""
        befores, rates = self._sampled(name, labels, rate, noise, minutes, every_s, until)
        totals = list(accumulate(max(0.0, one) * every_s for one in rates))
        self._add(name, labels, befores, [round(one, 3) for one in totals], clock_s)

    def _sampled(
        self,
        name: str,
        labels: Mapping[str, str],
        value: Of,
        noise: float,
        minutes: int,
        every_s: int,
        until: float,
    ) -> tuple[list[float], list[float]]:
        by_chance = random.Random("/".join((self.seed, name, *labels.values())))
        befores = [seconds / 60 for seconds in range(minutes * 60, -1, -every_s)]
        befores = [before for before in befores if before >= until]
        return befores, [value(at) * (1 + by_chance.gauss(0, noise)) for at in befores]

    def _add(
        self,
        name: str,
        labels: Mapping[str, str],
        befores: Sequence[float],
        values: Sequence[float],
        clock_s: int,
    ) -> None:
        instants = [round((self.now + clock_s - before * 60) * 1000) for before in befores]
        metric = {**labels, "__name__": name}
        self.lines.append(
            orjson.dumps({"metric": metric, "values": values, "timestamps": instants})
        )


def _from(minutes: float, usual: float, then: float) -> Of:
    """`usual`, and `then` from so many minutes before now on."""
    return lambda before: then if before <= minutes else usual


def _steady(value: float) -> Of:
    return lambda _: value


def leak(now: int) -> LiveWorld:
    """A ledger's memory grows for six hours; its garbage collector works more and more."""
    server = _Server(now, "leak")

    def grows(usual: float, then: float) -> Of:
        return lambda before: usual + (then - usual) * max(0.0, 1 - before / 360)

    for name in _SHOP:
        of, ill = {"svc": name}, name == "ledger"
        server.gauge("mem_held_mb", of, grows(400, 1900 if ill else 400), noise=0.02)
        server.gauge("gc_pause_ms", of, grows(4, 40 if ill else 4), noise=0.1)
        server.gauge("app_req_time_p95", of, grows(80, 150 if ill else 80), noise=0.08)
        server.counter("app_hits", of, _steady(30.0))
    return LiveWorld(
        "it has been getting slower since this morning, what is going on?",
        server.lines,
        ("ledger",),
        ("memory", "mem_held_mb", "gc_pause_ms"),
    )


def config_change(now: int) -> LiveWorld:
    """Pricing reads a new configuration and fails; nothing was deployed."""
    server = _Server(now, "config change")
    fails = {"pricing": 0.09, "storefront": 0.03}
    for name in _SHOP:
        of = {"svc": name}
        server.counter("app_hits", of, _steady(40.0))
        share = fails.get(name, 0.0005)
        server.counter("app_nok", of, _from(25, 0.02, 40.0 * share), noise=0.2)
        server.gauge("app_req_time_p95", of, _steady(90.0))
        revision = _from(26, 41, 42) if name == "pricing" else _steady(17)
        server.gauge("settings_rev", of, revision, noise=0.0)
    return LiveWorld("why do orders fail?", server.lines, ("pricing",), ("app_nok", "settings_rev"))


def third_party(now: int) -> LiveWorld:
    """Three services wait for an external payment provider."""
    server = _Server(now, "third party")
    callers = ("storefront", "basket", "ledger")
    for name in _SHOP:
        of, waits = {"svc": name}, name in callers
        server.gauge("app_req_time_p95", of, _from(18, 90, 2600 if waits else 90))
        server.counter("app_hits", of, _steady(25.0))
        if waits:
            peer = {**of, "peer": "paypilot"}
            server.gauge("outbound_wait_p95", peer, _from(18, 120, 2500))
            server.gauge("outbound_wait_p95", {**of, "peer": "geobase"}, _steady(40))
    return LiveWorld("why is the storefront slow?", server.lines, ("paypilot",), ())


def one_of_twelve(now: int) -> LiveWorld:
    """One of twelve instances of the search answers slowly."""
    server = _Server(now, "one of twelve")
    for name in _SHOP:
        for number in range(12 if name == "searcher" else 2):
            of = {"svc": name, "inst": f"{name}-{number}"}
            ill = name == "searcher" and number == 7
            server.gauge("app_req_time_p95", of, _from(30, 60, 900 if ill else 60))
            server.counter("app_hits", of, _steady(8.0))
            server.gauge("go_goroutines", of, _from(30, 120, 2400 if ill else 120))
    return LiveWorld(
        "some searches are slow, why?", server.lines, ("searcher",), ("app_req_time_p95",)
    )


def daily_peak(now: int) -> LiveWorld:
    """Nothing is wrong: it is the busy hour, as every day."""
    server = _Server(now, "daily peak")

    def day(low: float, high: float) -> Of:
        def at(before: float) -> float:
            share = (1 + math.cos(2 * math.pi * before / _DAY)) / 2
            return low + (high - low) * share**3

        return at

    for name in _SHOP:
        of = {"svc": name}
        server.counter("app_hits", of, day(5, 60), minutes=8 * _DAY, every_s=300)
        server.gauge("app_req_time_p95", of, day(60, 110), minutes=8 * _DAY, every_s=300)
        server.gauge("busy_share", of, day(0.1, 0.55), minutes=8 * _DAY, every_s=300)
    return LiveWorld("there is a lot of traffic, is anything wrong?", server.lines)


def skewed_clocks(now: int) -> LiveWorld:
    """Parcels' pool is used up; its samples carry a clock that is four minutes behind."""
    server = _Server(now, "skewed clocks")
    slow = {"parcels": 1900.0, "storefront": 700.0}
    for name in _SHOP:
        clock_s = -240 if name == "parcels" else 20
        of = {"svc": name}
        then = slow.get(name, 90.0)
        server.gauge("app_req_time_p95", of, _from(20, 90, then), clock_s=clock_s)
        server.counter("app_hits", of, _steady(20.0), clock_s=clock_s)
        used = _from(21, 6, 20 if name == "parcels" else 6)
        server.gauge("conns_taken", of, used, noise=0.02, clock_s=clock_s)
    return LiveWorld("why is the storefront slow?", server.lines, ("parcels",), ("conns_taken",))


def many_series(now: int) -> LiveWorld:
    """Four hundred services and 20,000 series; one service is slow and fails."""
    server = _Server(now, "many series")
    healthy = [_quiet_values(random.Random(f"quiet/{number}")) for number in range(50)]
    names = ("app_req_time_p95", "app_nok_share", "busy_share", "mem_held_mb", "threads_n")
    instants = [round((now - before * 60) * 1000) for before in range(720, -1, -4)]
    count = 0
    for service in range(400):
        for instance in range(10):
            for name in names:
                count += 1
                values = healthy[count % len(healthy)]
                if service == 217 and name in names[:2]:
                    values = [*values[:-6], *(one * 9 for one in values[-6:])]
                metric = {"__name__": name, "svc": f"unit-{service:03}", "inst": f"i{instance}"}
                row = {"metric": metric, "values": values, "timestamps": instants}
                server.lines.append(orjson.dumps(row))
    return LiveWorld("users complain, what is wrong?", server.lines, ("unit-217",), names[:2])


def _quiet_values(by_chance: random.Random) -> list[float]:
    return [round(0.5 * (1 + by_chance.gauss(0, 0.06)), 4) for _ in range(181)]


def traffic_outage(now: int) -> LiveWorld:
    """Requests fall from 20 a second to nothing."""
    server = _Server(now, "traffic outage")
    for name in ("checkout", "cart"):
        of = {"service": name}
        lost = name == "checkout"
        server.counter(
            "http_requests_total", {**of, "code": "200"}, _from(15, 20, 0 if lost else 20)
        )
        server.gauge("http_request_duration_seconds_p99", of, _steady(0.2))
    return LiveWorld(
        "is checkout all right?", server.lines, ("checkout",), ("traffic", "http_requests_total")
    )


def all_down(now: int) -> LiveWorld:
    """Every service ends at once; the scrapes fail."""
    server = _Server(now, "all down")
    for name in ("checkout", "cart", "payments"):
        of = {"service": name, "job": name, "instance": f"{name}:9000"}
        server.counter("http_requests_total", {**of, "code": "200"}, _steady(20), until=12)
        server.gauge("http_request_duration_seconds_p99", of, _steady(0.2), until=12)
        server.gauge("up", {"job": name, "instance": f"{name}:9000"}, _from(12, 1, 0), noise=0.0)
    names = ("checkout", "cart", "payments")
    return LiveWorld(
        "is everything all right?", server.lines, names, ("(up)", "traffic", "http_requests_total")
    )


def target_down(now: int) -> LiveWorld:
    """One of the scraped targets cannot be reached any more."""
    server = _Server(now, "target down")
    for name in ("notifier", "gateway", "orders"):
        target = {"job": name, "instance": f"{name}:8080"}
        down = name == "notifier"
        server.gauge("up", target, _from(14, 1, 0 if down else 1), noise=0.0)
        server.counter(
            "http_requests_total", {**target, "code": "200"}, _steady(9), until=14 if down else 0
        )
    return LiveWorld("is anything wrong?", server.lines, ("notifier",), ("(up)", "traffic"))


def queue_grows(now: int) -> LiveWorld:
    """Messages pile up, from ten to ninety thousand."""
    server = _Server(now, "queue")
    for name in _SHOP:
        of, grows = {"svc": name}, name == "mailbox"
        server.gauge(
            "pending_items",
            of,
            (lambda before: 10 + 90_000 * max(0.0, 1 - before / 40)) if grows else _steady(10),
        )
        server.counter("app_hits", of, _steady(12.0))
    return LiveWorld("mails arrive late, why?", server.lines, ("mailbox",), ("pending_items",))


def success_share(now: int) -> LiveWorld:
    """The share of requests that succeed falls from .999 to .95."""
    server = _Server(now, "success share")
    for name in _SHOP:
        of = {"svc": name}
        then = 0.95 if name == "basket" else 0.999
        server.gauge("sr_ok", of, _from(20, 0.999, then), noise=0.0003)
        server.counter("app_hits", of, _steady(33.0))
        server.gauge("app_req_time_p95", of, _steady(70.0))
    return LiveWorld("customers see errors, why?", server.lines, ("basket",), ("sr_ok",))


WORLDS: Final[Mapping[str, Callable[[int], LiveWorld]]] = {
    "leak": leak,
    "config-change": config_change,
    "third-party": third_party,
    "one-of-twelve": one_of_twelve,
    "daily-peak": daily_peak,
    "skewed-clocks": skewed_clocks,
    "many-series": many_series,
    "traffic-outage": traffic_outage,
    "all-down": all_down,
    "target-down": target_down,
    "queue-grows": queue_grows,
    "success-share": success_share,
}
UNMAPPED: Final = tuple(WORLDS)[:7]


def batches(lines: Sequence[bytes], size: int = 4 << 20) -> Iterator[bytes]:
    """Bodies of requests that hold all lines."""
    batch: list[bytes] = []
    held = 0
    for line in lines:
        batch.append(line)
        held += len(line)
        if held > size:
            yield b"\n".join(batch)
            batch, held = [], 0
    if batch:
        yield b"\n".join(batch)
