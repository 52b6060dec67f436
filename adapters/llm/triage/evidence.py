"""Facts about products from the sweeps and the deploys, without judgement or text for people."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import median
from typing import Final

from pydantic import JsonValue

from adapters.llm.triage.case import Case, SeenResult, instant, number_of, plain, text_of
from adapters.llm.triage.cluster_facts import DatastoreFact, IllFact, datastore_facts, ill_facts
from adapters.llm.triage.deploy_facts import DeployFact, deploys
from adapters.llm.triage.explained import called_of, part_of, seen_by
from adapters.llm.triage.vanished import GoneFact, RecordFact, gone_facts, record_facts
from tools.analysis.call_graph import CallGraph, edges_in
from tools.analysis.usual import UNUSUAL
from tools.product_names import ANY_PRODUCT

METRICS: Final = "core__sweep_metrics"
LOGS: Final = "core__error_patterns"
TRACES: Final = "core__sweep_traces"
CLUSTER: Final = "core__sweep_cluster"
SWEEPS: Final = (METRICS, LOGS, TRACES, CLUSTER)
PROPOSE: Final = "core__propose_action"
REPORT: Final = "core__report_findings"
GET_LOGS: Final = "core__get_logs"


@dataclass(frozen=True, slots=True)
class Moved:
    """A signal that changed; fields as core__sweep_metrics names them.

    `is_past`: its time range ended a while ago.
    """

    product: str
    role: str
    signal: str
    unit: str
    usual: float
    worst: float
    falls: bool
    score: float
    beyond: bool
    since: datetime | None
    since_before: bool
    under_way: bool  # when the range began
    until: datetime | None  # usual again from then on
    last: float  # its newest sample
    last_at: datetime | None  # of that one, where none came for long
    requests: float | None
    mark: str
    is_past: bool = False
    called: str = ""  # the service that the product waited for, as a label says
    where: str = ""  # the part that moved, or the callers that noticed it
    full_in_s: float | None = None  # until it reaches its limit, or nought, at this rate

    @property
    def figure(self) -> tuple[str, float, float]:
        """What several products have alike when it is of their common machine."""
        return self.signal, self.usual, self.worst

    @property
    def is_unusual(self) -> bool:
        """Further than ever before, or than chance goes; else it is as it was at times before."""
        return self.beyond or self.score >= UNUSUAL

    @property
    def over_since(self) -> datetime | None:
        """None while it continues, and if that is unknown."""
        return self.until if self.last_at is None else None

    @property
    def is_back(self) -> bool:
        """Whether its newest sample is as usual, and nearer to usual than to the worst.

        One such sample is no end.
        """
        away, worst = abs(self.last - self.usual), abs(self.worst - self.usual)
        return away * self.score < min(UNUSUAL, self.score / 2) * worst


@dataclass(frozen=True, slots=True)
class StandingFact:
    """A signal without an earlier baseline; fields as core__sweep_metrics names them.

    `is_alone`: no other signal of the product without a known role had a clear trend. `is_usual`: it has a
    baseline after all, and always was so.
    """

    product: str
    role: str
    signal: str
    unit: str
    first: float
    first_at: datetime | None  # when its data began, where that is known
    now: float
    falls: bool
    size: float
    limit: float | None
    runs_out_s: float | None
    mark: str
    is_alone: bool = True
    is_usual: bool = False

    @property
    def figure(self) -> tuple[str, float, float]:
        """As of Moved."""
        return self.signal, self.first, self.now

    @property
    def is_bad(self) -> bool:
        """At a limit that holds for everybody, or about to be."""
        return self.limit is not None or self.runs_out_s is not None


@dataclass(frozen=True, slots=True)
class LogFact:
    """A kind of lines that changed."""

    product: str
    level: str
    change: str
    before: int
    after: int
    expected: float
    example: str
    names: tuple[str, ...]
    since: datetime | None
    since_before: bool
    until: datetime | None  # the last one, where none came for long
    mark: str

    @property
    def more(self) -> float:
        """Lines beyond those expected; below 0 where fewer came."""
        return self.after - self.expected

    @property
    def is_more_errors(self) -> bool:
        """Whether errors or worse come that did not, or not as often."""
        return self.level in {"error", "fatal"} and self.change in {"new", "grown"}


@dataclass(frozen=True, slots=True)
class SpanFact:
    """An operation that changed; fields as core__sweep_traces names them.

    `is_outlier`: compared with other calls of the same time, not with earlier ones.
    """

    product: str
    what: str
    operation: str
    callee: str
    caller: str
    is_outlier: bool
    before: float
    after: float
    weight: float
    mark: str


@dataclass(frozen=True, slots=True)
class Facts:
    """All of a case, and the graph of calls."""

    moved: Sequence[Moved]
    standing: Sequence[StandingFact]
    logs: Sequence[LogFact]
    spans: Sequence[SpanFact]
    ill: Sequence[IllFact]
    deploys: Sequence[DeployFact]
    gone: Sequence[GoneFact]
    records: Sequence[RecordFact]
    compared: int  # series with a baseline
    graph: CallGraph
    ways_slow: dict[str, float]
    usual_requests: float | None
    subject_requests: float | None  # None when they are not known, or few
    measured: frozenset[str]
    more_errors: Mapping[str, float]
    datastores: Sequence[DatastoreFact]
    without_earlier_lines: frozenset[str]  # no data shows whether their lines are new
    failing_no_more: frozenset[str]  # their failures are measured and normal


def facts_of(case: Case) -> Facts:
    metrics, logs = case.of(METRICS), swept(case, LOGS)
    traces, cluster = case.of(TRACES), case.of(CLUSTER)
    name = _Names(case.products)
    rows = metrics.rows("shifts") if metrics else ()
    moved = [_moved(row, metrics, name, is_past=case.is_past) for row in rows] if metrics else []
    lines = [_log(row, logs, name) for row in logs.rows("changes")] if logs else []
    outside = list(
        _called(moved, {*case.products, *(metrics.mapping("within") if metrics else ())})
    )
    busy = [one.requests for one in moved if one.requests]
    ways = traces.mapping("ways_slow") if traces else {}
    return Facts(
        moved=[*moved, *outside],
        standing=list(_standings(metrics, case.subject, case.asked.subject, name))
        if metrics
        else [],
        logs=lines,
        spans=[_span(row, traces, name) for row in traces.rows("shifts")] if traces else [],
        ill=list(ill_facts(cluster, name.of)) if cluster else [],
        deploys=deploys(case),
        gone=list(gone_facts(metrics)) if metrics else [],
        records=list(record_facts(metrics)) if metrics else [],
        compared=int(metrics.number("compared") or 0) if metrics else 0,
        graph=CallGraph(
            [*(_calls(traces, name) if traces else ()), *((m.product, m.called) for m in moved)],
            edges_in((x.product, x.example, x.names) for x in lines if x.is_more_errors),
        ),
        ways_slow={name.of(one): value for one in ways if (value := _count_of(ways, one))},
        usual_requests=median(busy) if busy else None,
        subject_requests=_count_of(metrics.mapping("traffic"), case.subject) if metrics else None,
        datastores=list(datastore_facts(cluster, name.of)) if cluster else [],
        more_errors=_more_errors(logs, name) if logs else {},
        without_earlier_lines=frozenset(_without_earlier(logs, name) if logs else ()),
        failing_no_more=frozenset(_with_role(metrics, "errors") if metrics else ()),
        measured=frozenset(metrics.mapping("within")) if metrics else frozenset(),
    )


def swept(case: Case, tool: str) -> SeenResult | None:
    """The newest look at all products; one at a single product's lines, or some kinds, does not
    count.
    """
    found = reversed(case.all_of(tool))
    return next((seen for seen in found if tool != LOGS or _is_of_all(seen.arguments)), None)


def _is_of_all(arguments: Mapping[str, JsonValue]) -> bool:
    if arguments.get("level") or arguments.get("query"):
        return False
    return arguments.get("product", "") in ("", ANY_PRODUCT) or arguments.get("others") is True


class _Names:
    """Products are called as the channel calls them; any other name is made one plain word."""

    def __init__(self, products: Sequence[str]) -> None:
        self._known = frozenset(products)

    def of(self, text: str) -> str:
        return text if text in self._known else plain(text)


def _moved(row: Mapping[str, JsonValue], seen: SeenResult, name: _Names, *, is_past: bool) -> Moved:
    worst = number_of(row, "worst") or 0.0
    return Moved(
        product=name.of(text_of(row, "product")),
        role=text_of(row, "role"),
        signal=plain(text_of(row, "signal")),
        unit=text_of(row, "unit"),
        usual=number_of(row, "usual") or 0.0,
        worst=worst,
        falls=row.get("direction") == "down",
        score=_count_of(row, "score") or 0.0,
        beyond=row.get("beyond_all_before") is True,
        since=instant(text_of(row, "since")),
        since_before=row.get("since_before") is True,
        under_way=row.get("under_way") is True or row.get("since_before") is True,
        until=instant(text_of(row, "until")),
        last=worst if (last := number_of(row, "last")) is None else last,
        last_at=instant(text_of(row, "last_at")),
        requests=_count_of(row, "requests"),
        mark=seen.mark,
        is_past=is_past,
        called=called_of(text_of(row, "only_at")),
        where=part_of(text_of(row, "only_at")),
        full_in_s=_count_of(row, "full_in_s"),
    )


def _called(moved: Sequence[Moved], own: Collection[str]) -> Iterator[Moved]:
    by_called: dict[str, list[Moved]] = {}
    for one in moved:
        if one.called and one.called not in own:
            by_called.setdefault(one.called, []).append(one)
    for called, seen in by_called.items():
        worst = max(seen, key=lambda one: one.score)
        where = seen_by([one.product for one in seen])
        yield replace(worst, product=called, called="", where=where, requests=None)


def _count_of(row: Mapping[str, JsonValue], name: str) -> float | None:
    """A number that cannot be below nothing; None where it is, or absent."""
    number = number_of(row, name)
    return None if number is None or number < 0 else number


def _standings(seen: SeenResult, subject: str, asked: str, name: _Names) -> Iterator[StandingFact]:
    """Standing problems of any product; mere trends only if the subject has no baseline.

    Failures at a constant level count only for the product that the question names.
    """
    without_past = subject in seen.mapping("too_short") and subject not in seen.mapping("within")
    found = [_standing(row, seen, name) for row in seen.rows("standing")]
    unnamed = Counter(fact.product for fact in found if fact.role == "other")
    for fact in found:
        is_of_others = fact.role == "errors" and asked not in ("", fact.product)
        if (without_past or fact.is_bad) and not is_of_others:
            yield replace(fact, is_alone=fact.role != "other" or unnamed[fact.product] < 2)


def _standing(row: Mapping[str, JsonValue], seen: SeenResult, name: _Names) -> StandingFact:
    product, role = text_of(row, "product"), text_of(row, "role")
    return StandingFact(
        product=name.of(product),
        role=role,
        signal=plain(text_of(row, "signal")),
        unit=text_of(row, "unit"),
        first=number_of(row, "first") or 0.0,
        first_at=instant(text_of(row, "first_at")),
        now=number_of(row, "now") or 0.0,
        falls=row.get("direction") == "down",
        size=number_of(row, "size") or 0.0,
        limit=number_of(row, "limit"),
        runs_out_s=number_of(row, "runs_out_s"),
        mark=seen.mark,
        is_usual=role in text_of(seen.mapping("within"), product).split(),
    )


def _log(row: Mapping[str, JsonValue], seen: SeenResult, name: _Names) -> LogFact:
    names = row.get("names")
    return LogFact(
        product=name.of(text_of(row, "product")),
        level=text_of(row, "level"),
        change=text_of(row, "change"),
        before=int(_count_of(row, "before") or 0),
        after=int(_count_of(row, "after") or 0),
        expected=_count_of(row, "expected") or 0.0,
        example=text_of(row, "example"),
        names=tuple(name.of(str(one)) for one in names) if isinstance(names, list) else (),
        since=instant(text_of(row, "since")),
        since_before=row.get("since_before") is True,
        until=instant(text_of(row, "until")),
        mark=seen.mark,
    )


def _span(row: Mapping[str, JsonValue], seen: SeenResult, name: _Names) -> SpanFact:
    return SpanFact(
        product=name.of(text_of(row, "product")),
        what=text_of(row, "what"),
        operation=text_of(row, "operation"),
        callee=name.of(text_of(row, "callee")),
        caller=name.of(text_of(row, "caller")),
        is_outlier=text_of(row, "versus") == "others",
        before=_count_of(row, "before") or 0.0,
        after=_count_of(row, "after") or 0.0,
        weight=_count_of(row, "weight") or 0.0,
        mark=seen.mark,
    )


def _with_role(seen: SeenResult, role: str) -> Iterator[str]:
    for product, roles in seen.mapping("within").items():
        if isinstance(roles, str) and role in roles.split():
            yield product


def _more_errors(seen: SeenResult, name: _Names) -> Mapping[str, float]:
    lines, errors = seen.mapping("lines"), seen.mapping("errors")
    more: dict[str, float] = {}
    for product in errors:
        before, after = _pair(errors.get(product))
        lines_before, lines_after = _pair(lines.get(product))
        load = lines_after / lines_before if lines_before else 0.0
        more[name.of(product)] = after - before * load
    return more


def _without_earlier(seen: SeenResult, name: _Names) -> Iterator[str]:
    for product, pair in seen.mapping("lines").items():
        if not _pair(pair)[0]:
            yield name.of(product)


def _pair(text: JsonValue) -> tuple[float, float]:
    first, _, second = text.partition("/") if isinstance(text, str) else ("", "", "")
    numbers = (first.isdecimal(), second.isdecimal())
    return (float(first), float(second)) if all(numbers) else (0.0, 0.0)


def _calls(seen: SeenResult, name: _Names) -> Iterator[tuple[str, str]]:
    for line in seen.texts("calls"):
        caller, arrow, callee = line.partition(" > ")
        if arrow:
            yield name.of(caller), name.of(callee)
