"""What a result says, row by row: which subject, what of it, which way, how much, since when.

A sentence is entailed only by one of these, never by a word that the result happens to contain.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from pydantic import JsonValue

from bot.chat.claims.clocks import instants
from bot.chat.claims.cluster_facts import cluster_facts
from bot.chat.claims.facts import (
    Fact,
    Fields,
    Kind,
    at_of,
    counted,
    is_number,
    names_of,
    numbers_of,
    rollbacks_in,
    rows_in,
    text_of,
    version_of,
    words_of,
)
from bot.chat.claims.metric_facts import factors, metric_facts
from bot.chat.claims.names import folded
from bot.chat.claims.quantities import KnownNumber, loose_numbers
from bot.chat.claims.results import Result
from bot.chat.claims.states import busiest, self_times, spans_of
from tools.attached import READ_ATTACHMENT
from tools.log_templates import without_clock

MOST_FACTS: Final = 4_000
MOST_ERROR: Final = 2_000  # characters of what a failed call says
_SHARES = frozenset({"failing", "cut"})  # of requests
_SPAN_ROLES = {"failing": "errors", "cut": ""}
_CHANGE_WORDS = {"new": "new", "grown": "more", "gone": "gone"}


def facts_of(result: Result) -> Sequence[Fact]:
    """Every fact of a result, at most `MOST_FACTS`; none of an attached file."""
    if result.evidence.tool == READ_ATTACHMENT:
        return ()
    if not result.evidence.ok:
        asked = (result.arguments.get(key) for key in ("product", "app_name", "name", "pod"))
        said = tuple(loose_numbers(result.evidence.content))
        return (
            Fact(
                result.number, Kind.CALL, names_of(*asked), figures={"now": said},
                terms={"state": words_of("failed")}, text=folded(result.evidence.content[:MOST_ERROR]),
            ),
        )  # fmt: skip
    found: list[Fact] = []
    for read in _READERS:
        for fact in read(result):
            found.append(fact)
            if len(found) >= MOST_FACTS:
                return found
    return found


def _spans_changed(result: Result) -> Iterator[Fact]:
    for row in rows_in(result.fields.get("shifts")):
        what, before, after = text_of(row, "what"), row.get("before"), row.get("after")
        if not what or not is_number(before) or not is_number(after):
            continue
        fails = what == "failing"
        family, size = ("ratio", 1.0) if what in _SHARES else ("time", 1e-3)
        now = (KnownNumber(after, after * size, family),)
        usual = (KnownNumber(before, before * size, family),)
        yield Fact(
            result.number, Kind.SIGNAL if fails else Kind.SPAN,
            names_of(text_of(row, "product"), text_of(row, "callee")), _SPAN_ROLES.get(what, "latency"),
            "up" if after > before else "down" if after < before else "flat",
            {"now": now, "usual": usual, "factor": factors(now, usual)},
            terms={"operation": frozenset(folded(text_of(row, "operation")).split())},
        )  # fmt: skip


def _trace(result: Result) -> Iterator[Fact]:
    root = result.fields.get("root")
    whole = numbers_of(result.fields, ("duration_us",), "time", 1e-6)
    for span in spans_of(root) if isinstance(root, dict) else ():
        tags = span.get("tags")
        host = tags.get("host") if isinstance(tags, dict) else None
        took = numbers_of(span, ("duration_us", "self_us"), "time", 1e-6)
        shares = tuple(
            KnownNumber(t.value / w.value, t.value / w.value, "ratio")
            for t in took
            for w in whole
            if w.value
        )
        yield Fact(
            result.number, Kind.SPAN, names_of(text_of(span, "service"), host), "latency", "", {"now": took, "share": shares},
            terms={"operation": frozenset(folded(text_of(span, "operation")).split())},
        )  # fmt: skip
    if isinstance(root, dict):
        taker = busiest(self_times(root))
        yield Fact(result.number, Kind.SPAN, names_of(taker), terms={"noun": words_of("mosttime")})
    if whole:
        spans = numbers_of(result.fields, ("span_count",), "count", 1.0)
        yield Fact(
            result.number, Kind.SPAN, frozenset(), figures={"now": whole, "count": spans},
            terms={"noun": words_of("trace", "span")},
        )  # fmt: skip


def _found_traces(result: Result) -> Iterator[Fact]:
    for row in rows_in(result.fields.get("traces")):
        yield Fact(
            result.number, Kind.SPAN, names_of(text_of(result.arguments, "product"), text_of(row, "trace_id")), "latency", "",
            {"now": numbers_of(row, ("duration_ms",), "time", 1e-3), "count": numbers_of(row, ("spans", "failed"), "count", 1.0)},
            at_of(row, at="ts"), {"operation": frozenset(folded(text_of(row, "root")).split()), "noun": words_of("trace")},
        )  # fmt: skip


def _deploys(result: Result) -> Iterator[Fact]:
    is_whole = result.fields.get("truncated") is not True
    rows = rows_in(result.fields.get("deploys"))
    pairs = list(rollbacks_in(rows))
    undone = {id(gone) for gone, _ in pairs}
    for row in rows:
        at = at_of(row, at="ts").get("at", ())
        took = numbers_of(row, ("duration_s",), "time", 1.0)
        ends = tuple(one + timedelta(seconds=t.value) for one in at for t in took if t.value < 1e6)
        terms = {
            "version": version_of(row, "version"),
            "previous": version_of(row, "previous_version"),
            "actor": words_of(text_of(row, "actor").lower()),
            "state": words_of(text_of(row, "status").lower(), "reverted" if row.get("rolled_back") is True or id(row) in undone else ""),
            "commit": words_of(text_of(row, "commit").lower()),
            "host": words_of(text_of(row, "host").lower()),
        }  # fmt: skip
        yield Fact(
            result.number, Kind.DEPLOY, names_of(text_of(row, "product")), "", "", {"took": took},
            {"at": at, "until": ends}, terms, is_whole=is_whole,
        )  # fmt: skip
    for gone, back in pairs:
        yield Fact(
            result.number, Kind.ROLLBACK, names_of(text_of(back, "product")), times=at_of(back, at="ts"),
            terms={"version": version_of(gone, "version"), "previous": version_of(back, "version"),
                   "actor": words_of(text_of(back, "actor").lower()), "state": words_of("reverted")},
        )  # fmt: skip


def _patterns(result: Result) -> Iterator[Fact]:
    for row in rows_in(result.fields.get("changes")):
        change = text_of(row, "change")
        hosts = row.get("hosts")
        named = row.get("names")
        terms = {
            "level": words_of(_level(text_of(row, "level"))), "state": words_of(_CHANGE_WORDS.get(change, "")),
            "host": words_of(*(h.lower() for h in hosts if isinstance(h, str))) if isinstance(hosts, list) else frozenset(),
            "named": words_of(*(n.lower() for n in named if isinstance(n, str))) if isinstance(named, list) else frozenset(),
        }  # fmt: skip
        way = {"new": "up", "grown": "up", "gone": "down"}.get(change, "flat")
        figures = {"count": numbers_of(row, ("after",), "count", 1.0),
                   "usual": numbers_of(row, ("before", "expected"), "count", 1.0)}  # fmt: skip
        yield Fact(
            result.number, Kind.LOG, names_of(text_of(row, "product")), "errors" if _level(text_of(row, "level")) == "error" else "",
            way, figures, at_of(row, since="since", until="until"), terms, folded(f"{text_of(row, 'example')} {without_clock(text_of(row, 'example'))}"),
        )  # fmt: skip


def _lines(result: Result) -> Iterator[Fact]:
    rows = rows_in(result.fields.get("lines"))
    if not isinstance(result.fields.get("lines"), list) or "changes" in result.fields:
        return
    product = text_of(result.arguments, "product") or text_of(result.arguments, "pod")
    is_whole = result.fields.get("truncated") is not True
    numbers = result.index.numbers.values()
    measured = tuple(one for of in numbers for one in of if one.family not in ("", "count"))
    dated = [(row, next(instants(text_of(row, "ts")), None)) for row in rows]
    by_level: dict[str, list[tuple[Fields, datetime | None]]] = {"": dated}
    for row, ts in dated:
        if level := _level(text_of(row, "level")):
            by_level.setdefault(level, []).append((row, ts))
    for level, of_level in by_level.items():
        of_it = [row for row, _ in of_level]
        at = tuple(ts for _, ts in of_level if ts is not None)
        newest, oldest = (max(at),) if at else (), (min(at),) if at and is_whole else ()
        terms = {
            "level": words_of(level),
            "host": words_of(*(text_of(r, "host").lower() for r in of_it)),
        }
        texts = folded(" ".join(text_of(row, "message") for row in of_it[:200]))
        yield Fact(
            result.number, Kind.LOG, names_of(product), "errors" if level == "error" else "", "",
            {"count": counted(len(of_it)), "now": measured},
            {"at": at, "since": at[-1:] + at[:1], "newest": newest, "oldest": oldest}, terms, texts, is_whole,
        )  # fmt: skip


_LISTED: Final = {
    "deploys": ("deploy",), "lines": ("line", "message"), "events": ("event",), "rows": ("pod", "object"),
    "traces": ("trace",), "incidents": ("incident",), "patterns": ("page",), "workflows": ("workflow",),
    "resources": ("resource",), "warnings": ("warning",),
}  # fmt: skip


def _counts(result: Result) -> Iterator[Fact]:
    asked = names_of(text_of(result.arguments, "product"), text_of(result.arguments, "app_name"))
    for key, nouns in _LISTED.items():
        rows = result.fields.get(key)
        if isinstance(rows, list) and not (key == "lines" and "changes" in result.fields):
            total = result.fields.get("total_matches")
            count = total if is_number(total) else len(rows)
            yield Fact(
                result.number, Kind.COUNT, asked, "", "", {"count": counted(count)}, {},
                {"noun": words_of(*nouns)}, is_whole=result.fields.get("truncated") is not True,
            )  # fmt: skip
            if count == len(rows) and not asked - {"*"}:
                yield from _of_each(result.number, rows, nouns)
    spans = result.fields.get("span_count")
    if is_number(spans):
        yield Fact(
            result.number, Kind.COUNT, frozenset(), "", "", {"count": counted(spans)}, {}, {"noun": words_of("span")}
        )  # fmt: skip


def _of_each(number: int, rows: JsonValue, nouns: Sequence[str]) -> Iterator[Fact]:
    owners = Counter(text_of(row, "product").lower() for row in rows_in(rows))
    for name, of_it in owners.items():
        if name:
            terms = {"noun": words_of(*nouns)}
            yield Fact(
                number, Kind.COUNT, names_of(name), figures={"count": counted(of_it)}, terms=terms
            )


def _incidents(result: Result) -> Iterator[Fact]:
    for row in rows_in(result.fields.get("incidents")):
        yield Fact(
            result.number, Kind.OBJECT, names_of(text_of(row, "id")), times=at_of(row, at="started_at"),
            terms={"noun": words_of("incident")},
            text=folded(" ".join(value for value in row.values() if isinstance(value, str))),
        )  # fmt: skip


def _level(level: str) -> str:
    lowered = level.lower()
    return {"fatal": "error", "critical": "error", "warning": "warn"}.get(lowered, lowered)


_READERS = (
    metric_facts, _spans_changed, _trace, _found_traces, _deploys, _patterns, _lines,
    cluster_facts, _incidents, _counts,
)  # fmt: skip
