"""Lines of CloudWatch Logs, asked for in Logs Insights.

FilterLogEvents gives the oldest first and knows no regular expressions, so a page of the newest would
read a range whole; Insights sorts and counts. What it may do, from "CloudWatch Logs quotas"
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/cloudwatch_limits_cwl.html) and the API's
reference: 10,000 rows of one answer, 50 log groups by name, times in whole seconds with the end
included, a query is started and then asked for until it is complete. It is paid by what it scans.
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

import structlog
from pydantic import Field, JsonValue, TypeAdapter

from adapters.observe.aws import Aws, unreadable
from adapters.observe.backend import read_body
from adapters.observe.instants import checked_ns, ns_of, to_ns
from adapters.observe.levels import stated_in_lines
from adapters.observe.line_filter import Stage, pattern_of, stages_of
from adapters.observe.log_entry import TRACE_IDS, Entry, Newest, in_order, made
from adapters.observe.log_source import Wanted
from adapters.observe.remembered import Remembered
from tools.capabilities import Interval
from tools.errors import UpstreamFailed
from tools.outside_json import Entries, OutsideModel, Unread, count_of

LOG_GROUP: Final = "@log"  # Insights' own field: `account:group`
_SHOWN: Final = ("@timestamp", "@message", "@logStream", LOG_GROUP)
_MOST: Final = 10_000  # rows of one answer
_MOST_LINES: Final = 5_000  # lines of 6 KB then fit the read limit of an answer
_MOST_GROUPS: Final = 50
_MOST_PAGES: Final = 20  # of DescribeLogGroups, 50 groups each
_MS: Final = 1_000_000  # nanoseconds
_POLLS_S: Final = (0.2, 0.3, 0.5, 1.0)  # the last again and again
_TIMEOUT_S: Final = 300.0  # the ceiling of a wide query; the runner cuts earlier
_RUNNING: Final = frozenset({"Scheduled", "Running"})
_ESCAPED: Final = re.compile(r"\\.|/|\n", re.DOTALL)
_MILLISECONDS: Final = re.compile(r"[0-9]{1,15}")
_REMEMBERED_FOR: Final = timedelta(minutes=5)


class _Started(OutsideModel):
    id: str = Field(alias="queryId")


class _Cell(OutsideModel):
    field: str
    value: str = ""


class _Results(OutsideModel):
    status: str
    results: Entries[list[_Cell]] = Field(default_factory=list)


class _Group(OutsideModel):
    name: str = Field(alias="logGroupName")


class _Groups(OutsideModel):
    groups: Entries[_Group] = Field(default_factory=list, alias="logGroups")
    next: str = Field(default="", alias="nextToken")


_STARTED: Final = TypeAdapter(_Started)
_RESULTS: Final = TypeAdapter(_Results)
_GROUPS: Final = TypeAdapter(_Groups)
_log = structlog.stdlib.get_logger(__name__)


class CloudWatchLogs:
    """Implements `LogSource`.

    `log_groups` are prefixes of names, such as `/ecs/prod-`: the rest of a name is the product;
    without a prefix it is the part after the last slash of any group. With `field` these groups are
    shared: it names the product in them. `polls_s` are the waits for a query's end, for tests.
    """

    name = "CloudWatch Logs"
    most = _MOST_LINES

    def __init__(
        self,
        aws: Aws,
        log_groups: Sequence[str] = (),
        field: str = "",
        polls_s: Sequence[float] = _POLLS_S,
    ) -> None:
        self._aws = aws
        self._prefixes = tuple(log_groups)
        self.product_field = field or LOG_GROUP
        self._polls_s = polls_s
        self._groups: Remembered[Sequence[str]] = Remembered(_REMEMBERED_FOR)

    def filters(self, text: str) -> bool:
        """Every filter: Insights has substrings and regular expressions."""
        del text
        return True

    async def fields(self, interval: Interval) -> Sequence[str]:
        del interval
        return [self.product_field]

    async def values(self, field: str, interval: Interval) -> Mapping[str, str]:
        """The groups with the product that each is of, whether they have lines or not."""
        groups = await self._known_groups()
        if field == LOG_GROUP:
            return {name: self._product_of(name) for name in groups}
        start_ns, end_ns = to_ns(interval.start), to_ns(interval.end)
        query = f"filter ispresent({_name(field)}) | stats count(*) as n by {_name(field)} | limit {_MOST}"
        rows, _unread = await self._rows(query, groups, start_ns, end_ns)
        return {row[field]: row[field] for row in rows if row.get(field)}

    async def newest(self, wanted: Wanted, limit: int) -> Newest:
        shown = ", ".join(map(_name, dict.fromkeys((*_SHOWN, *TRACE_IDS, wanted.field))))
        query = f"fields {shown} | {_selecting(wanted)} | sort @timestamp desc | limit {limit}"
        groups = await self._of(wanted)
        rows, unread = await self._rows(query, groups, wanted.start_ns, wanted.end_ns)
        found = await made(rows, _entry, limit, unread)
        # More than one query where there are more groups than fit one.
        return replace(found, entries=(await in_order(found.entries))[:limit])

    async def counts(self, wanted: Wanted) -> Mapping[str, int]:
        """In one query for every fifty groups."""
        query = f"{_selecting(wanted)} | stats count(*) as kortex_lines by {_name(wanted.field)}"
        groups = await self._of(wanted)
        rows, unread = await self._rows(query, groups, wanted.start_ns, wanted.end_ns)
        counts = {
            row[wanted.field]: count
            for row in rows
            if wanted.field in row and (count := count_of(row.get("kortex_lines"))) is not None
        }
        if rows and not counts:
            raise UpstreamFailed(f"{self.name}: not a count of lines")
        unreadable = unread + len(rows) - len(counts)
        if unreadable:
            _log.warning("logs.unreadable_counts", backend=self.name, count=unreadable)
        return counts

    async def _of(self, wanted: Wanted) -> Sequence[str]:
        return wanted.values if wanted.field == LOG_GROUP else await self._known_groups()

    def _product_of(self, group: str) -> str:
        first = max((one for one in self._prefixes if group.startswith(one)), key=len, default="")
        return group.removeprefix(first) if first else group.rstrip("/").rpartition("/")[2]

    async def _known_groups(self) -> Sequence[str]:
        return await self._groups.get("", self._ask_groups)

    async def _ask_groups(self) -> Sequence[str]:
        parts = await asyncio.gather(*(self._groups_of(one) for one in self._prefixes or ("",)))
        return list(dict.fromkeys(name for part in parts for name in part))

    async def _groups_of(self, prefix: str) -> Sequence[str]:
        """At most a thousand; a token that leads to itself ends it."""
        names: list[str] = []
        token = ""
        for _ in range(_MOST_PAGES):
            body: dict[str, JsonValue] = {"limit": 50}
            body |= {"logGroupNamePrefix": prefix} if prefix else {}
            body |= {"nextToken": token} if token else {}
            answer = await self._aws.call("DescribeLogGroups", body)
            page = await read_body(answer, _GROUPS)
            if page is None:
                raise unreadable(self.name, answer)
            names += [group.name for group in page.groups]
            if not page.next or page.next == token:
                break
            token = page.next
        return names

    async def _rows(
        self, query: str, groups: Sequence[str], start_ns: int, end_ns: int
    ) -> tuple[list[Mapping[str, str]], int]:
        unread = Unread()
        parts = [groups[at : at + _MOST_GROUPS] for at in range(0, len(groups), _MOST_GROUPS)]
        found = await asyncio.gather(
            *(self._run(query, p, start_ns, end_ns, unread) for p in parts)
        )
        return [row for rows in found for row in rows], unread.count

    async def _run(
        self, query: str, groups: Sequence[str], start_ns: int, end_ns: int, unread: Unread
    ) -> list[Mapping[str, str]]:
        body: dict[str, JsonValue] = {
            "logGroupNames": list(groups),
            "startTime": start_ns // (1000 * _MS),
            "endTime": -(-end_ns // (1000 * _MS)),
            "queryString": f"{_within(start_ns, end_ns)} | {query}",
            "limit": _MOST,
        }
        answer = await self._aws.call("StartQuery", body)
        started = await read_body(answer, _STARTED)
        if started is None:
            raise unreadable(self.name, answer)
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                return await self._completed(started.id, unread)
        except TimeoutError as error:
            raise UpstreamFailed(f"{self.name}: the query did not end in time") from error

    async def _completed(self, query_id: str, unread: Unread) -> list[Mapping[str, str]]:
        waits = iter(self._polls_s)
        while True:
            await asyncio.sleep(next(waits, self._polls_s[-1]))
            answer = await self._aws.call(
                "GetQueryResults", {"queryId": query_id, "maxItems": _MOST}
            )
            polled = Unread()  # what a running query gives is given again
            found = await read_body(answer, _RESULTS, polled)
            if found is None:
                raise unreadable(self.name, answer)
            if found.status == "Complete":
                unread.count += polled.count
                return [_row(cells) for cells in found.results]
            if found.status not in _RUNNING:
                raise UpstreamFailed(f"{self.name}: the query ended as {found.status}")


def _row(cells: Sequence[_Cell]) -> Mapping[str, str]:
    row = {cell.field: cell.value for cell in cells if cell.field != "@ptr"}
    if LOG_GROUP in row:
        row[LOG_GROUP] = row[LOG_GROUP].partition(":")[2] or row[LOG_GROUP]
    return row


def _entry(row: Mapping[str, str]) -> Entry:
    labels = {name: value for name, value in row.items() if name not in _SHOWN[:2] and value}
    at = checked_ns(_instant(row.get("@timestamp", "")))
    return Entry(at, row.get("@message", "").rstrip("\n"), labels)


def _instant(text: str) -> int:
    """As AWS writes it; stand-ins of AWS give milliseconds. Raises ValueError for another."""
    return int(text) * _MS if _MILLISECONDS.fullmatch(text) else ns_of(text)


def _within(start_ns: int, end_ns: int) -> str:
    """[start, end) to the millisecond: the query's own times are whole seconds."""
    start, end = -(-start_ns // _MS), -(-end_ns // _MS)
    return f"filter toMillis(@timestamp) >= {start} and toMillis(@timestamp) < {end}"


def _selecting(wanted: Wanted) -> str:
    tests = [_filter(stage) for stage in stages_of(wanted.filter)]
    if wanted.field != LOG_GROUP:
        values = ", ".join(json.dumps(value, ensure_ascii=False) for value in wanted.values)
        tests.insert(0, f"{_name(wanted.field)} in [{values}]")
    if wanted.min_level:
        tests.append(_level(wanted.min_level))
    return f"filter {' and '.join(tests)}" if tests else "filter ispresent(@message)"


def _filter(stage: Stage) -> str:
    like = "like" if stage.wanted else "not like"
    return f"@message {like} {_regex(pattern_of(stage))}"


def _regex(pattern: str) -> str:
    return f"/{_ESCAPED.sub(_on_one_line, pattern)}/"


def _on_one_line(found: re.Match[str]) -> str:
    return {"/": "\\/", "\n": "\\n", "\\\n": "\\n"}.get(found[0], found[0])


def _level(minimum: str) -> str:
    """What a line states, JSON or text: the first pattern that is there counts."""
    stated = stated_in_lines(minimum)
    text = f"@message like {_regex(stated[-1][0])}"
    for wanted, known in reversed(stated[:-1]):
        line, other = f"@message like {_regex(wanted)}", f"@message not like {_regex(known)}"
        text = f"({line} or ({other} and {text}))"
    return text


def _name(field: str) -> str:
    """A field's name; one with other characters than letters, digits, `@`, `.` and `_` in backticks."""
    return field if re.fullmatch(r"@?[A-Za-z0-9_.]+", field) else f"`{field.replace('`', '')}`"
