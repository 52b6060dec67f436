"""Coverage of the checks: an all-clear needs every role of every product in question."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Final

from pydantic import JsonValue

from adapters.llm.triage.case import Case, SeenResult, plain
from adapters.llm.triage.deploy_facts import DEPLOYS, unread_deploys
from adapters.llm.triage.evidence import CLUSTER, LOGS, METRICS, SWEEPS, TRACES, swept
from adapters.llm.triage.surroundings import ERRORS, quoted
from adapters.llm.triage.too_young import too_young
from adapters.llm.triage.unmeasured import ended_roles, samples_missing
from adapters.llm.triage.weigh import Suspicion
from tools.core.get_recent_deploys import UNREAD

_MOST_LACKING: Final = 3
_MOST_BARE: Final = 3  # products that nothing is known of, by name
_MOST_OWN: Final = 3  # products whose figures are named when the question names none
_FAMILIES: Final = {METRICS: "metrics", LOGS: "logs", TRACES: "traces", ERRORS: "errors"}
_WORDS: Final = {METRICS: "metrics", LOGS: "logs", TRACES: "traces", CLUSTER: "Kubernetes"}
_OF_REQUESTS: Final = frozenset({"latency", "errors"})
# More or less of it is as often a change of use as a trouble: alone it shows no health.
_OF_LOAD: Final = frozenset({"traffic", "network", "other"})
_UNJUDGED: Final = frozenset({"traffic", "other"})  # they do not show how requests end


def not_looked_at(case: Case) -> Iterator[str]:
    """Everything that keeps "nothing is wrong" from being said, in words."""
    if name := case.asked.left_out:
        yield f"{plain(name)}: not one of this channel's products"
    yield from _missing(case)
    yield from _blind(case)


def own_blind(case: Case, suspects: Sequence[Suspicion]) -> str:
    """Empty if the product itself is suspected, for any other reason."""
    metrics, subject = case.of(METRICS), case.asked.subject
    if metrics is None or not subject or (suspects and suspects[0].product == subject):
        return ""
    if lacking := next(samples_missing(metrics, [subject], case.now, goes_on=True), ""):
        return lacking
    if roles_within(metrics, subject) | _moved(metrics, subject):
        return ""
    return next(_blind_metrics(case, metrics, subject), "")


def looked_at(case: Case) -> Iterator[str]:
    for tool in SWEEPS:
        seen = swept(case, tool)
        if seen is None:
            continue
        words = _WORDS[tool]
        if tool == METRICS:
            within = seen.mapping("within")
            whom = (case.subject,) if case.names_subject else case.products[:_MOST_OWN]
            still = {
                one: " ".join(sorted(roles_within(seen, one) - _moved(seen, one))) for one in whom
            }
            own = "; ".join(f"{plain(one)}: {roles}" for one, roles in still.items() if roles)
            if case.names_subject and within and case.subject not in within:
                own = f"none of {plain(case.subject)}"
            more = _at_this_time(seen, whom) + _unread(seen)
            yield f"metrics of {len(within)} products{f' ({own})' if own else ''}{more}"
        elif tool == LOGS:
            yield f"logs of {len(seen.mapping('lines'))} products"
        else:
            yield words
    tracked = case.of(ERRORS)
    if tracked is not None and tracked.texts("projects"):
        yield f"errors of {', '.join(map(plain, tracked.texts('projects')[:3]))}"


def _at_this_time(metrics: SeenResult, whom: Sequence[str]) -> str:
    daily = metrics.mapping("time_of_day")
    found = [f"{plain(one)} {daily[one]}" for one in whom if isinstance(daily.get(one), str)]
    return f", normal for this time of day: {', '.join(found)}" if found else ""


def _unread(metrics: SeenResult) -> str:
    """That series exist which the sweep did not read; empty where it read them all."""
    number = round(metrics.number("unread") or 0)
    return f", {number} further series not read" if number > 0 else ""


def _missing(case: Case) -> Iterator[str]:
    """Sources that exist and could not be read; without any source of figures, that too."""
    for tool in SWEEPS:
        failed = any(seen.tool == tool and not seen.ok for seen in case.seen)
        if failed and swept(case, tool) is None:
            yield f"{_WORDS[tool]}: could not be read; see {_settings(case, tool)}"
        elif tool == METRICS and tool not in case.tools and not _is_told_by_cluster(case):
            yield "metrics: none are configured; set [observe.metrics]"

    if case.of(ERRORS) is None and any(seen.tool == ERRORS for seen in case.seen):
        yield f"errors: could not be read; see {_settings(case, ERRORS)}"


def _settings(case: Case, tool: str) -> str:
    if tool == CLUSTER:
        return "[kubernetes]"
    family = _FAMILIES[tool]
    return f"[{dict(case.tables).get(family, f'observe.{family}')}]"


def _is_told_by_cluster(case: Case) -> bool:
    cluster, logs = case.of(CLUSTER), swept(case, LOGS)
    if not case.asked.of_cluster or cluster is None or logs is None:
        return False
    return (
        case.subject in cluster.mapping("pods")
        and _some_now(logs.mapping("lines").get(case.subject) or "")
        and not cluster.rows("ill")
        and all(row.get("over") is True for row in cluster.rows("warnings"))
    )


def _unread_entries(case: Case) -> Iterator[str]:
    for seen in case.seen:
        number = round(seen.number("unread_entries") or 0)
        if seen.ok and number:
            entries = "1 entry" if number == 1 else f"{number} entries"
            yield f"{_WORDS.get(seen.tool, plain(seen.tool))}: {entries} could not be read"


def _blind(case: Case) -> Iterator[str]:
    yield from _unread_entries(case)
    deploys = case.of(DEPLOYS)
    if deploys is not None:
        for note in unread_deploys(deploys)[:_MOST_LACKING]:
            yield quoted(note.replace(UNREAD, "all deploys"))
    metrics = case.of(METRICS)
    if metrics is not None:
        yield from _blind_in_metrics(case, metrics)
    cluster = case.of(CLUSTER)
    if cluster is not None:
        unread = cluster.texts("unread")[:_MOST_LACKING]
        yield from (f"Kubernetes: {quoted(note)}" for note in unread)
    logs = swept(case, LOGS)
    if logs is not None and logs.result.get("truncated") is True:
        yield "logs: more patterns changed than are listed"
    if logs is not None and (partly := logs.texts("partly")):
        yield f"logs: too many errors to read all from {', '.join(map(plain, partly[:5]))}"
    if logs is not None and errors_against_hour(logs):
        yield "log errors could only be compared with the hour before"
    traces = case.of(TRACES)
    if traces is not None:
        before, after = traces.number("traces_before") or 0, traces.number("traces_after") or 0
        if after and not before:
            yield "traces: no earlier traces to compare with"


def _blind_in_metrics(case: Case, metrics: SeenResult) -> Iterator[str]:
    subject = case.subject
    whom = (subject,) if case.names_subject else case.products
    yield from islice(samples_missing(metrics, whom, case.now), _MOST_LACKING)
    yield from (
        _blind_metrics(case, metrics, subject) if subject else _blind_to_all(metrics, case.now)
    )
    if subject and case.asked.fails and not _shows_failures(case, metrics):
        yield f"whether requests of {plain(subject)} fail: it has neither an error metric nor logs"
    is_slow = case.asked.symptom == "latency" and _shows_any(whom, metrics)
    if subject and is_slow and not _shows_latency(whom, metrics):
        yield f"whether requests of {_named_few(whom)} are slow: no latency could be compared"
    if not case.names_subject:
        yield from _blind_to_others(case.products[1:], metrics)
        yield from _unjudged(case.products, metrics)
    if metrics.text("day_unread"):
        yield "metrics: the last 24 hours could not be read, so older problems would not show"
    if metrics.result.get("truncated") is True:
        yield "metrics: more series changed than are listed"


def _shows_failures(case: Case, metrics: SeenResult) -> bool:
    logs = swept(case, LOGS)
    lines = logs.mapping("lines").values() if logs else ()
    return "errors" in roles_within(metrics, case.subject) | _moved(metrics, case.subject) or any(
        map(_some_now, lines)
    )


def errors_against_hour(logs: SeenResult) -> bool:
    """Whether there are errors now that were not compared with a day."""
    some = any(map(_some_now, logs.mapping("errors").values()))
    return some and not logs.arguments.get("against_day")


def _some_now(pair: JsonValue) -> bool:
    return str(pair).rpartition("/")[2] not in {"", "0"}


def _shows_any(products: Collection[str], metrics: SeenResult) -> bool:
    return any(
        (roles_within(metrics, one) | _moved(metrics, one)) & _OF_REQUESTS for one in products
    )


def _shows_latency(products: Collection[str], metrics: SeenResult) -> bool:
    """Whether a latency of these was compared: who complains of slowness means one of them."""
    return any("latency" in roles_within(metrics, one) | _moved(metrics, one) for one in products)


def _unchecked(metrics: SeenResult, product: str) -> frozenset[str]:
    roles = metrics.mapping("unchecked").get(product)
    return frozenset(roles.split() if isinstance(roles, str) else ())


def roles_within(metrics: SeenResult, product: str) -> frozenset[str]:
    """The roles of its figures that were compared and are as usual."""
    roles = metrics.mapping("within").get(product)
    return frozenset(roles.split() if isinstance(roles, str) else ())


def _moved(metrics: SeenResult, product: str) -> frozenset[str]:
    rows = (row for row in metrics.rows("shifts") if row.get("product") == product)
    return frozenset(str(row.get("role")) for row in rows)


def _blind_metrics(case: Case, metrics: SeenResult, subject: str) -> Iterator[str]:
    known, moved = roles_within(metrics, subject), _moved(metrics, subject)
    told = metrics.mapping("too_short").get(subject)
    short = frozenset(told.split() if isinstance(told, str) else ())
    if short:
        is_usual = case.asked.start is None
        words = too_young(metrics, subject, case.now, sorted(short), is_usual=is_usual)
        yield f"{plain(subject)}: {words}"
    ended = ended_roles(metrics, subject)
    if subject in metrics.texts("without") or not (known | moved | short | ended):
        none = "it has no metrics from that time"
        none = none if case.is_past else "no metrics of its own were found"
        yield f"{plain(subject)}: {none}"
    elif case.names_subject and not (known | moved | short | ended) & _OF_REQUESTS:
        yield f"{plain(subject)}: neither latency nor errors are measured"
    elif not (known | moved | short | ended) - _OF_LOAD:
        yield f"{plain(subject)}: only its load is measured"
    if unchecked := _unchecked(metrics, subject) - short - ended:
        yield f"{plain(subject)}: its {', '.join(sorted(unchecked))} could not be compared"


def _blind_to_all(metrics: SeenResult, now: datetime | None) -> Iterator[str]:
    """A question and a channel without products: never an all-clear."""
    short, within = metrics.mapping("too_short"), metrics.mapping("within")
    if bare := [one for one in short if one not in within]:
        yield f"metrics: {_named_few(bare)}: {too_young(metrics, plain(bare[0]), now)}"
    elif not (within or metrics.rows("shifts")):
        yield "metrics: none were found for any product"
    yield "no products are set for this channel, so coverage is unknown"


def _blind_to_others(others: Sequence[str], metrics: SeenResult) -> Iterator[str]:
    known = {one: roles_within(metrics, one) | _moved(metrics, one) for one in others}
    bare = [one for one in others if not known[one]]
    short = [one for one in bare if one in metrics.mapping("too_short")]
    if young := _named_few(short):
        yield f"metrics: {young}: not enough history to compare"
    if none := _named_few([one for one in bare if one not in short]):
        yield f"metrics: none of {none} were found or could be compared"
    rest = [one for one in others if known[one]]
    if partly := [one for one in rest if _unchecked(metrics, one)]:
        roles = ", ".join(sorted(_unchecked(metrics, partly[0])))
        yield f"metrics: {_named_few(partly)}: some could not be compared, such as {roles}"
    if load := [one for one in rest if not known[one] - _OF_LOAD and one not in partly]:
        yield f"metrics: only the load of {_named_few(load)} is measured"


def _unjudged(products: Sequence[str], metrics: SeenResult) -> Iterator[str]:
    """Who may be slow or fail all the time: requests or unknown figures, and neither of the two."""
    known = ((one, roles_within(metrics, one) | _moved(metrics, one)) for one in products)
    hidden = [
        one
        for one, roles in known
        if roles - _OF_LOAD and roles & _UNJUDGED and not roles & _OF_REQUESTS
    ]
    if hidden:
        yield f"metrics: neither latency nor errors of {_named_few(hidden)} are measured"


def _named_few(products: Sequence[str]) -> str:
    more = f" and {len(products) - _MOST_BARE} more" if len(products) > _MOST_BARE else ""
    return ", ".join(map(plain, products[:_MOST_BARE])) + more


def saw_anything(case: Case) -> bool:
    return any(case.of(tool) is not None for tool in SWEEPS)
