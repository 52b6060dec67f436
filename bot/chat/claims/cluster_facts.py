"""Facts of what runs: pods, nodes, events, workflows, and how many of them are in which state."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from bot.chat.claims.facts import (
    Fact,
    Kind,
    at_of,
    counted,
    names_of,
    numbers_of,
    rows_in,
    text_of,
    words_of,
)
from bot.chat.claims.names import folded
from bot.chat.claims.quantities import KnownNumber, figures
from bot.chat.claims.results import Result

# Its name, states, restarts and age.
_Object = tuple[str, frozenset[str], tuple[KnownNumber, ...], tuple[KnownNumber, ...]]
_HASHES = re.compile(r"(?:-[a-z0-9]{6,10})?-[a-z0-9]{4,6}$|-\d{1,3}$")
_STATES: Final = (
    (re.compile(r"crashloop|backoff"), frozenset({"crashing", "failing", "restarting"})),
    (re.compile(r"oomkill(?:ed|ing)"), frozenset({"oomkilled", "killed", "crashing"})),
    (re.compile(r"pending"), frozenset({"pending", "unscheduled"})),
    (re.compile(r"imagepull"), frozenset({"failing", "pulling"})),
    (re.compile(r"evicted"), frozenset({"evicted"})),
    (re.compile(r"^(?:failed|error)$"), frozenset({"failed", "failing"})),
    (re.compile(r"notready|not ready"), frozenset({"unready"})),
    (re.compile(r"^(?:completed|succeeded|success|ok)$"), frozenset({"completed", "ok"})),
)  # fmt: skip
_WELL: Final = frozenset({"running", "ready", "healthy", "up"})


def cluster_facts(result: Result) -> Iterator[Fact]:
    """Those of a table of objects, of a sweep, of events and of workflows."""
    yield from _table(result)
    yield from _cluster(result)
    yield from _workflows(result)


def _table(result: Result) -> Iterator[Fact]:
    columns, rows = result.fields.get("columns"), result.fields.get("rows")
    if not isinstance(columns, list) or not isinstance(rows, list):
        return
    heads = [str(column).lower() for column in columns]
    objects: list[_Object] = []
    for row in rows:
        if not isinstance(row, list):
            continue
        cells = dict(zip(heads, map(str, row), strict=False))
        states = _states_of(cells.get("status", ""), cells.get("ready", ""))
        name = cells.get("name", "").lower()
        objects.append((name, states, _cell(cells, "restarts"), _lasting(cells.get("age", ""))))
        figures = {
            "restarts": _cell(cells, "restarts"),
            "age": _lasting(cells.get("age", "")),
            "ready": _cell(cells, "ready"),
        }
        yield Fact(
            result.number, Kind.OBJECT, names_of(name, _app_of(name)), "", "", figures, {},
            {"state": states, "noun": words_of(*_kind_nouns(text_of(result.arguments, "kind")))},
            is_whole=result.fields.get("truncated") is not True,
        )  # fmt: skip
    yield from _groups(
        result.number, objects, _kind_nouns(text_of(result.arguments, "kind") or "pods")
    )


def _groups(number: int, objects: Sequence[_Object], nouns: Collection[str]) -> Iterator[Fact]:
    by_app: dict[str, list[_Object]] = {"": list(objects)}
    for one in objects:
        by_app.setdefault(_app_of(one[0]), []).append(one)
    for app, of_it in by_app.items():
        total = counted(len(of_it))
        restarts, ages = {one[2] for one in of_it}, {one[3] for one in of_it}
        for state, count in Counter(s for one in of_it for s in one[1]).items():
            figures = {"count": counted(count), "total": total,
                       "restarts": next(iter(restarts)) if len(restarts) == 1 else (),
                       "age": next(iter(ages)) if len(ages) == 1 else ()}  # fmt: skip
            terms = {"state": words_of(state), "noun": words_of(*nouns)}
            yield Fact(number, Kind.COUNT, names_of(app), figures=figures, terms=terms)


def _cluster(result: Result) -> Iterator[Fact]:
    for row in rows_in(result.fields.get("ill")):
        name, state = text_of(row, "name").lower(), text_of(row, "state")
        yield Fact(
            result.number, Kind.OBJECT, names_of(name, text_of(row, "product"), _app_of(name)), "", "", {}, {},
            {"state": _states_of(state, "") | words_of(*re.findall(r"[a-z]+", state.lower())), "noun": words_of(*_kind_nouns(text_of(row, "kind")))},
            folded(" ".join(text_of(row, key) for key in ("kind", "name", "state", "mechanism", "detail"))),
        )  # fmt: skip
    for row in [*rows_in(result.fields.get("warnings")), *rows_in(result.fields.get("events"))]:
        kind, _, name = text_of(row, "object").lower().rpartition("/")
        yield Fact(
            result.number, Kind.OBJECT, names_of(name, text_of(row, "product"), _app_of(name)), "", "",
            {"count": numbers_of(row, ("count",), "count", 1.0)}, at_of(row, at="ts"),
            {"state": _states_of(text_of(row, "reason"), "") | words_of("over" if row.get("over") is True else "",
                           "warning" if row.get("type", "Warning") == "Warning" else "normal"),
             "noun": words_of(*_kind_nouns(kind), "event")},
            folded(" ".join([kind, name, text_of(row, "reason"), text_of(row, "message")])),
        )  # fmt: skip
    pods = result.fields.get("pods")
    told = list(pods.items()) if isinstance(pods, dict) else []
    for product, said in [*told, ("", result.fields.get("nodes"))]:
        match = re.match(r"(\d{1,6}) of (\d{1,6}) (\w+)", str(said))
        if match is not None:
            count, total = float(match[1]), float(match[2])
            yield Fact(
                result.number, Kind.COUNT, names_of(product), "", "",
                {"count": counted(count), "total": counted(total)},
                {}, {"state": _WELL, "noun": words_of("pod", "replica") if product else words_of("node")},
            )  # fmt: skip


def _workflows(result: Result) -> Iterator[Fact]:
    for row in rows_in(result.fields.get("workflows")):
        took = _lasting(text_of(row, "duration"))
        yield Fact(
            result.number, Kind.OBJECT, names_of(text_of(row, "app_name"), text_of(row, "name"), text_of(row, "id")), "", "",
            {"took": took}, at_of(row, at="started_at", until="completed_at"),
            {"state": _states_of(text_of(row, "status"), ""), "noun": words_of("workflow")},
        )  # fmt: skip
    name, status = text_of(result.fields, "name"), text_of(result.fields, "status")
    if name and status:
        yield Fact(
            result.number, Kind.OBJECT, names_of(name), terms={"state": _states_of(status, ""), "noun": words_of("application")}
        )  # fmt: skip


def _states_of(status: str, ready: str) -> frozenset[str]:
    lowered = status.lower()
    ups, _, of = ready.partition("/")
    is_ready = ups == of if of else None
    found = words_of(lowered)
    if lowered in ("running", "active", "ready", "healthy", "well"):
        found |= {"running"} if is_ready is False else _WELL
    if is_ready is False:
        found |= {"unready"}
    return found.union(*(words for pattern, words in _STATES if pattern.search(lowered)))


def _app_of(name: str) -> str:
    return _HASHES.sub("", name)


def _kind_nouns(kind: str) -> tuple[str, ...]:
    lowered = kind.lower()
    one = lowered.removesuffix("s")
    return tuple(filter(None, (one, "replica" if one == "pod" else "")))


def _cell(cells: Mapping[str, str], key: str) -> tuple[KnownNumber, ...]:
    match = re.match(r"\d{1,9}", cells.get(key, ""))
    return counted(float(match[0])) if match else ()


def _lasting(text: str) -> tuple[KnownNumber, ...]:
    return tuple(KnownNumber(f.raw, f.value, f.family) for f in figures(text))
