"""Log lines of one service in one minute: routine, chronic noise, single events, kept requests."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from json import dumps
from random import Random

from adapters.recorded.simulator.requests import Request, Visit
from adapters.recorded.simulator.scenario import ORDINARY, Chronic, OneLine, Scenario
from adapters.recorded.simulator.seeded import below, load, stream
from adapters.recorded.simulator.topology import BY_NAME, HOSTS, Service
from tools.capabilities import LogLine

_MINUTE_NS = 60_000_000_000
_SLOW_SELF_US = 150_000  # own time above which a service logs a warning
_ROUTINE = ("GET /healthz 200", "cache refreshed: {n} entries", "served {n} requests in 10s")
_ROUTINE_DATASTORE = (
    "connection received: host=10.2.14.7 port=5{n}",
    "automatic vacuum of table {id}",
)


def lines_in(
    seed: str, scenario: Scenario, service: Service, minute: int, of_requests: Iterable[LogLine]
) -> Sequence[LogLine]:
    """The lines, newest first; lines with the same timestamp in a fixed order.

    `of_requests` are the service's own, as `lines_of` has them; those of another minute are left out.
    """
    random = stream(seed, "lines", service.name, minute)
    lines = [
        *_routine(random, service, minute),
        *_chronic(random, (*ORDINARY, *scenario.chronic), service, minute),
        *_once(scenario.lines, service, minute),
        *(line for line in of_requests if line.ts_ns // _MINUTE_NS == minute),
    ]
    return sorted(lines, key=_newest_first)


def lines_of(requests: Iterable[Request]) -> Mapping[str, Sequence[LogLine]]:
    """What requests leave in the logs, by service, in the order of the requests."""
    found: dict[str, list[LogLine]] = {}
    for request in requests:
        for visit, _parent in request.visits():
            if visit.error or visit.self_us > _SLOW_SELF_US or visit.service == "gateway":
                found.setdefault(visit.service, []).append(_of_visit(request, visit))
    return found


def _newest_first(line: LogLine) -> tuple[int, str, str]:
    return (-line.ts_ns, line.host, line.message)


def _routine(random: Random, service: Service, minute: int) -> Iterator[LogLine]:
    texts = _ROUTINE_DATASTORE if service.datastore else _ROUTINE
    for _ in range(1 + round(2 * load(minute * 60.0) * random.random())):
        yield _line(random, service, minute, "info", texts[below(random, len(texts))])


def _chronic(
    random: Random, chronic: Sequence[Chronic], service: Service, minute: int
) -> Iterator[LogLine]:
    for noise in chronic:
        if noise.service != service.name or not _is_on(noise, minute):
            continue
        count = int(noise.per_minute) + (random.random() < noise.per_minute % 1.0)
        for _ in range(count):
            yield _line(random, service, minute, noise.level, noise.text)


def _is_on(noise: Chronic, minute: int) -> bool:
    at_s = minute * 60
    return (noise.since is None or at_s >= noise.since.timestamp()) and (
        noise.until is None or at_s < noise.until.timestamp()
    )


def _once(lines: Sequence[OneLine], service: Service, minute: int) -> Iterator[LogLine]:
    for line in lines:
        if line.service != service.name:
            continue
        at_s = int(line.at.timestamp())
        if at_s // 60 == minute:
            message = dumps({"msg": line.text})
            yield LogLine(at_s * 1_000_000_000, line.level, service.host(0), message)


def _line(random: Random, service: Service, minute: int, level: str, text: str) -> LogLine:
    # Writers flush in ticks of 250 ms, so lines share timestamps as they do behind real collectors.
    ts_ns = minute * _MINUTE_NS + below(random, 240) * 250_000_000
    number, bits = 12 + below(random, 388), random.getrandbits(28)
    hosts = HOSTS[service.name]
    host = hosts[below(random, len(hosts))]
    message = _shaped(text, service.datastore)
    message = message.replace("{n}", str(number)).replace("{id}", f"{bits:07x}")
    return LogLine(ts_ns, level, host, message)


# Before the blanks are filled: there are few texts, and letters and digits are the same in JSON.
@lru_cache(maxsize=64)
def _shaped(text: str, datastore: bool) -> str:
    """Datastores write plain lines, applications JSON."""
    return text if datastore else dumps({"msg": text})


def _of_visit(request: Request, visit: Visit) -> LogLine:
    end_ns = (visit.start_us + visit.duration_us) * 1000
    duration_ms = visit.duration_us // 1000
    if visit.error:
        fields: dict[str, str | int] = {"msg": "request failed", "error": visit.error}
        level = "error"
    elif visit.self_us > _SLOW_SELF_US:
        fields, level = {"msg": "slow request", "own_ms": visit.self_us // 1000}, "warn"
    else:
        fields, level = {"msg": "request", "slow": str(request.slow).lower()}, "info"
    fields |= {"op": visit.operation, "duration_ms": duration_ms, "trace_id": request.trace_id}
    fields |= _fan_out(visit)
    return LogLine(end_ns, level, visit.host, _written(visit.service, fields), request.trace_id)


def _written(service: str, fields: Mapping[str, str | int]) -> str:
    if BY_NAME[service].datastore:
        return " ".join(f"{name}={value!r}" for name, value in fields.items())
    return dumps(fields)


def _fan_out(visit: Visit) -> dict[str, str | int]:
    counts: dict[str, int] = {}
    for child in visit.children:
        counts[child.service] = counts.get(child.service, 0) + 1
    most = max(counts, key=counts.__getitem__, default="")
    return {f"{most}_calls": counts[most]} if most and counts[most] > 5 else {}


def versions_at(scenario: Scenario, at_s: float) -> dict[str, str]:
    """What version of each service ran at an instant."""
    running = {name: service.version for name, service in BY_NAME.items()}
    for deploy in scenario.deploys:
        if deploy.product in running:
            running[deploy.product] = deploy.previous_version
    for deploy in reversed(scenario.deploys):
        if deploy.at.timestamp() <= at_s:
            running[deploy.product] = deploy.version
    return running
