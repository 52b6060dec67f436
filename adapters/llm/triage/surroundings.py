"""The context of a cause: earlier incidents, pods, changes, the team's notes.

It never changes the judgement: it is read after it, and shown below it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from pydantic import JsonValue

from adapters.llm.triage.case import Case, SeenResult, instant, number_of, plain
from adapters.llm.triage.weigh import Suspicion

HISTORY = "core__get_incident_history"
PODS = "core__kubectl_get"
EVENTS = "core__kubectl_events"
APPLICATION = "core__get_application"
WORKFLOWS = "core__list_workflows"
PATTERNS = "core__search_patterns"
ERRORS = "core__get_errors"

POD_LABEL = "app"
_RUNS = frozenset({"Running", "Completed", "Succeeded"})
_OWN = "kortex:"  # the source of incidents that are sessions of this bot
_MOST_TOLD = 160
_FEW_WORDS = 80  # of a resolution, in one line of evidence on a phone
_MOST_NAMES = 4
_MOST_ISSUES = 5
# Formatting, links, mentions and citations need one of these characters; words and figures do not.
_NOT_PROSE = re.compile(r"[^\w\s.,;%()'-]|_")

_LIKE_A_MARK = re.compile(r"\[(?=E\d)")

Wish = tuple[str, Mapping[str, JsonValue]]


def quoted(text: str, most: int = _MOST_TOLD) -> str:
    """A text from outside as one line of plain words."""
    words = " ".join(_NOT_PROSE.sub(" ", text).split())
    return words if len(words) <= most else words[:most].rsplit(" ", 1)[0] + " ..."


def in_code(text: str, most: int = _MOST_TOLD) -> str:
    """A text from outside verbatim on one line, as code: nothing in it is formatted or cited."""
    line = _LIKE_A_MARK.sub("[ ", " ".join(text.split())).replace("`", "'")
    return f"`{line if len(line) <= most else f'{line[:most].rstrip()}…'}`"


def wishes(case: Case, top: Suspicion | None, window: str) -> Iterator[Wish]:
    """The calls to make once the judgement exists; `window` is the range under test."""
    product = top.product if top else case.subject
    if product not in case.products:
        return
    yield PODS, {"kind": "pods", "selector": f"{POD_LABEL}={product}"}
    yield WORKFLOWS, {"app_name": product}
    if top is None:
        return
    symptom = _symptom(top)
    yield ERRORS, errors_of(product, window)
    yield EVENTS, {"kind": "deployment", "name": product}
    yield APPLICATION, {"app_name": case.subject or product}
    yield HISTORY, {"query": f"{product} {symptom}", "limit": 3}
    yield PATTERNS, {"intent": f"{product} {symptom}", "limit": 1}


def errors_of(product: str, window: str) -> Mapping[str, JsonValue]:
    """The arguments that ask for its newest errors."""
    return {"product": product, "time_range": window, "limit": _MOST_ISSUES}


def new_errors(seen: SeenResult) -> Sequence[Mapping[str, JsonValue]]:
    """Issues with their first event ever in the range asked about."""
    return [row for row in seen.rows("issues") if row.get("new") is True]


def _symptom(top: Suspicion) -> str:
    if top.deploy:
        return "slow after a release"
    return "connection pool exhausted" if top.kind == "pool" else "slow"


def around(case: Case) -> Iterator[str]:
    for tool, told in _TOLD:
        for seen in case.all_of(tool):
            yield from told(seen)


def _pods(seen: SeenResult) -> Iterator[str]:
    columns, rows = seen.result.get("columns"), seen.result.get("rows")
    if not isinstance(columns, list) or not isinstance(rows, list) or "Status" not in columns:
        return
    at = columns.index("Status")
    states = [str(row[at]) for row in rows if isinstance(row, list) and len(row) > at]
    product = plain(str(seen.arguments.get("selector", "")).partition("=")[2])
    of = f"of {len(states)} pod{'' if len(states) == 1 else 's'}"
    ill = sorted({plain(state) for state in states if state not in _RUNS})
    if ill:
        number = sum(state not in _RUNS for state in states)
        names = ", ".join(ill[:_MOST_NAMES])
        yield f"{number} {of} of {product} not running: {names} [{seen.mark}]"
    elif states:
        words = f"all {len(states)} pods are running" if len(states) > 1 else "its pod is running"
        unready = _not_ready(columns, rows)
        words = f"{unready} {of} not ready" if unready else words
        yield f"{product}: {words} [{seen.mark}]"


def _not_ready(columns: Sequence[JsonValue], rows: Sequence[JsonValue]) -> int:
    """How many pods run and are not ready: fewer of their containers are than there are."""
    if "Ready" not in columns:
        return 0
    at = columns.index("Ready")
    counts = [
        str(row[at]).partition("/") for row in rows if isinstance(row, list) and len(row) > at
    ]
    return sum(ready != of for ready, slash, of in counts if slash)


def _warnings(seen: SeenResult) -> Iterator[str]:
    product = plain(str(seen.arguments.get("name", "")))
    rows = [row for row in seen.rows("events") if str(row.get("type", "")) != "Normal"]
    reasons = dict.fromkeys(plain(str(row.get("reason", ""))) for row in rows)
    if reasons:
        names = ", ".join(list(reasons)[:_MOST_NAMES])
        yield f"Kubernetes warns of {product}: {names} [{seen.mark}]"


def _workflow(seen: SeenResult) -> Iterator[str]:
    rows = seen.rows("workflows")
    failed = next((row for row in rows if row.get("status") == "failed"), None)
    newest = failed or (rows[0] if rows else None)
    if newest is None:
        return
    at = instant(str(newest.get("started_at", "")))
    when = f" at {at:%H:%M} UTC" if at else ""
    name, state = quoted(str(newest.get("name", ""))), plain(str(newest.get("status", "")))
    yield f"the platform's workflow {name or 'without a name'}{when}: {state} [{seen.mark}]"


def error_line(row: Mapping[str, JsonValue]) -> str:
    """One issue: `"KeyError 'sku'" since 14:11 UTC, 150 events, first in release v2`."""
    began = instant(str(row.get("first_seen", "")))
    events = number_of(row, "events")
    release = quoted(str(row.get("release") or ""))
    parts = (
        f'"{quoted(str(row.get("title", "")))}"' + (f" since {began:%H:%M} UTC" if began else ""),
        f"{events:.0f} events" if events is not None else "",
        f"first in release {release}" if release else "",
    )
    return ", ".join(part for part in parts if part)


def _new_error(seen: SeenResult) -> Iterator[str]:
    new = new_errors(seen)
    for row in new[:1]:
        product = plain(str(seen.arguments.get("product", "")))
        others = f", and {len(new) - 1} more new ones" if len(new) > 1 else ""
        yield f"a new error of {product}: {error_line(row)}{others} [{seen.mark}]"


def _depends(seen: SeenResult) -> Iterator[str]:
    uses = [
        f"{plain(str(row.get('name', '')))} ({plain(str(row.get('type') or 'resource'))})"
        for row in seen.rows("resources")
    ]
    if uses:
        product = plain(str(seen.arguments.get("app_name", "")))
        yield f"on the platform {product} uses {', '.join(uses[:_MOST_NAMES])} [{seen.mark}]"


def _seen_before(seen: SeenResult) -> Iterator[str]:
    for line in islice(seen_before(seen, _FEW_WORDS), 1):
        yield f"seen before, {line}"


def seen_before(seen: SeenResult, most: int = _MOST_TOLD) -> Iterator[str]:
    """Past incidents, without earlier answers of Kortex: those are not incidents."""
    others = [row for row in seen.rows("incidents") if not str(row.get("id")).startswith(_OWN)]
    for row in others:
        title = quoted(str(row.get("title", "")))
        opened = instant(str(row.get("opened_at", "")))
        when = f"{opened:%Y-%m-%d}: " if opened else ""
        resolution = quoted(str(row.get("resolution_summary") or ""), most)
        then = f": {resolution}" if resolution else ""
        yield f'{when}"{title}"{then} [{seen.mark}]'


def _written(seen: SeenResult) -> Iterator[str]:
    for row in seen.rows("patterns")[:1]:
        section = quoted(str(row.get("section") or ""))
        where = f", section {section}" if section else ""
        yield f"Runbook: {quoted(str(row.get('title', '')))}{where} [{seen.mark}]"


# What helps most comes first: few lines are read.
_TOLD: Final[Sequence[tuple[str, Callable[[SeenResult], Iterator[str]]]]] = (
    (ERRORS, _new_error),
    (EVENTS, _warnings),
    (HISTORY, _seen_before),
    (PATTERNS, _written),
    (PODS, _pods),
    (WORKFLOWS, _workflow),
    (APPLICATION, _depends),
)
