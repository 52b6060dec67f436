"""VictoriaLogs, queried in LogsQL.

https://docs.victoriametrics.com/victorialogs/querying/ and
https://docs.victoriametrics.com/victorialogs/logsql/: an answer has no limit and no order unless
the query sets them, all values are text, equal lines stay separate, and a level is an ordinary
field. Tenants are the headers AccountID and ProjectID.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Final

import httpx
import structlog
from pydantic import Field, TypeAdapter, ValidationError

from adapters.observe.backend import Answer, Backend, refusal
from adapters.observe.instants import checked_ns, ns_of, ns_text, to_ns
from adapters.observe.levels import at_least, stated_in_lines
from adapters.observe.line_filter import Stage, pattern_of, stages_of
from adapters.observe.log_entry import HOSTS, LEVELS, TRACE_IDS, Entry, Newest, made
from adapters.observe.log_source import Wanted
from tools.capabilities import Interval
from tools.errors import InvalidArguments, UpstreamFailed
from tools.outside_json import Entries, OutsideModel, Texts, Unread, count_of, parse

_MOST: Final = 5000  # entries of one answer: our own bound, the server has none
_MOST_VALUES: Final = 10_000
_LARGE_BYTES: Final = 256 * 1024


class _Value(OutsideModel):
    value: str


class _Values(OutsideModel):
    values: Entries[_Value] = Field(default_factory=list)


_ROW: Final = TypeAdapter(Texts)
_VALUES: Final = TypeAdapter(_Values)
_log = structlog.stdlib.get_logger(__name__)


class VictoriaLogs:
    """Implements `LogSource`; the client has its tenant and credentials."""

    name = "VictoriaLogs"
    most = _MOST

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._backend = Backend(self.name, client)

    def filters(self, text: str) -> bool:
        """Every filter: LogsQL has RE2."""
        del text
        return True

    async def fields(self, interval: Interval) -> Sequence[str]:
        return await self._values("field_names", interval, {})

    async def values(self, field: str, interval: Interval) -> Mapping[str, str]:
        """Without the empty value, which means lines that lack the field."""
        form = {"field": field, "limit": str(_MOST_VALUES)}
        found = await self._values("field_values", interval, form)
        return {value: value for value in found if value}

    async def newest(self, wanted: Wanted, limit: int) -> Newest:
        """Sorted by the server, which keeps `limit` of them in memory."""
        kept = dict.fromkeys(("_time", "_msg", wanted.field, *LEVELS, *HOSTS, *TRACE_IDS))
        pipes = f"| sort by (_time desc) limit {limit} | fields {', '.join(map(_quoted, kept))}"
        unread = Unread()
        rows = await self._query(f"{_selecting(wanted)} {pipes}", unread)
        return await made(rows, _entry, limit, unread.count)

    async def counts(self, wanted: Wanted) -> Mapping[str, int]:
        stats = f"| stats by ({_quoted(wanted.field)}) count() kortex_lines"
        unread = Unread()
        rows = await self._query(f"{_selecting(wanted)} {stats}", unread)
        counts = {
            row.get(wanted.field, ""): count
            for row in rows
            if (count := count_of(row.get("kortex_lines"))) is not None
        }
        if rows and not counts:
            raise UpstreamFailed("VictoriaLogs: not a count of lines")
        unreadable = unread.count + len(rows) - len(counts)
        if unreadable:
            _log.warning("logs.unreadable_counts", backend=self.name, count=unreadable)
        return counts

    async def _values(
        self, what: str, interval: Interval, form: Mapping[str, str]
    ) -> Sequence[str]:
        times = _times(to_ns(interval.start), to_ns(interval.end))
        answer = await self._backend.post_form(f"/select/logsql/{what}", {"query": times, **form})
        _check(answer)
        try:
            return [one.value for one in parse(_VALUES, answer.body).values]
        except ValidationError as error:
            raise UpstreamFailed("VictoriaLogs: not a list of values", answer.status) from error

    async def _query(self, logsql: str, unread: Unread) -> Sequence[Mapping[str, str]]:
        answer = await self._backend.post_form("/select/logsql/query", {"query": logsql})
        _check(answer)
        if len(answer.body) > _LARGE_BYTES:
            return await asyncio.to_thread(_rows, answer, unread)
        return _rows(answer, unread)


def _rows(answer: Answer, unread: Unread) -> Sequence[Mapping[str, str]]:
    """JSON lines. Raises UpstreamFailed when none is one, and when the last is no JSON.

    An answer that breaks off may end in an error's words: what it holds is not whole.
    """
    lines = [line for line in answer.body.split(b"\n") if line.strip()]
    rows: list[dict[str, str]] = []
    for line in lines:
        try:
            rows.append(parse(_ROW, line, unread))
        except ValidationError as error:
            if line is lines[-1] and error.errors(include_url=False)[0]["type"] == "json_invalid":
                raise UpstreamFailed("VictoriaLogs: not lines of JSON", answer.status) from error
            unread.count += 1
    if lines and not rows:
        raise UpstreamFailed("VictoriaLogs: not lines of JSON", answer.status)
    return rows


def _entry(row: Mapping[str, str]) -> Entry:
    labels = {name: value for name, value in row.items() if name not in ("_time", "_msg") and value}
    return Entry(checked_ns(ns_of(row.get("_time", ""))), row.get("_msg", ""), labels)


def _selecting(wanted: Wanted) -> str:
    values = ", ".join(map(_quoted, wanted.values))
    parts = [
        _times(wanted.start_ns, wanted.end_ns),
        f"{_quoted(wanted.field)}:in({values})",
        *([_levels(wanted.min_level)] if wanted.min_level else []),
        *(_filter(stage) for stage in stages_of(wanted.filter)),
    ]
    return " ".join(parts)


def _times(start_ns: int, end_ns: int) -> str:
    return f"_time:[{ns_text(start_ns)}, {ns_text(end_ns)})"


def _filter(stage: Stage) -> str:
    return f"{'' if stage.wanted else '!'}_msg:~{_quoted(pattern_of(stage))}"


def _levels(minimum: str) -> str:
    """A field that was pushed, else what the line states: the first pattern that is there counts."""
    spelled = _quoted(rf"(?i)^\[?({'|'.join(sorted(at_least(minimum)))})\]?$")
    pushed = " or ".join(f"{_quoted(name)}:~{spelled}" for name in LEVELS)
    none = " ".join(f'{_quoted(name)}:""' for name in LEVELS)
    stated = stated_in_lines(minimum)
    line = f"_msg:~{_quoted(stated[-1][0])}"
    for wanted, known in reversed(stated[:-1]):
        line = f"(_msg:~{_quoted(wanted)} or (!_msg:~{_quoted(known)} {line}))"
    return f"({pushed} or ({none} {line}))"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _check(answer: Answer) -> None:
    if answer.ok:
        return
    if answer.status == 400 and "cannot parse" in answer.words():
        raise InvalidArguments(f"VictoriaLogs does not understand the filter: {answer.words()}")
    raise refusal(answer)
