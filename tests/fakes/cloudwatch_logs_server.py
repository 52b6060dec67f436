"""A fake of CloudWatch Logs: its Insights queries, and its log groups."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aiohttp import web

from adapters.observe.instants import ns_of

Event = Mapping[str, str]
Test = Callable[[Event], bool]
_WITHIN = re.compile(r"toMillis\(@timestamp\) >= (\d+) and toMillis\(@timestamp\) < (\d+)")
_LIKE = re.compile(r"@message (not )?like /((?:\\.|[^/\\])*)/")
_IN = re.compile(r"(\S+) in \[(.*?)\]")
_COUNTED = re.compile(r"stats count\(\*\) as (\w+) by (\S+)")


class CloudWatchLogsServer:
    """Holds events by group. Every query is asked for twice before it is complete."""

    def __init__(self, groups: Mapping[str, Sequence[Event]]) -> None:
        self.groups = groups
        self.started: list[Any] = []
        self.headers: list[Mapping[str, str]] = []
        self._asked: Counter[str] = Counter()

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.headers.append(dict(request.headers))
        match request.headers["x-amz-target"]:
            case "Logs_20140328.DescribeLogGroups":
                return _json(self._described(body))
            case "Logs_20140328.StartQuery":
                if len(body["logGroupNames"]) > 50:
                    return refused("InvalidParameterException", "at most 50 log groups")
                self.started.append(body)
                return _json({"queryId": str(len(self.started) - 1)})
            case "Logs_20140328.GetQueryResults":
                return _json(self._results(body["queryId"]))
        return refused("UnknownOperationException", "")

    def _described(self, body: Any) -> Any:
        prefix, begin = body.get("logGroupNamePrefix", ""), int(body.get("nextToken", "0"))
        names = sorted(name for name in self.groups if name.startswith(prefix))
        shown = [{"logGroupName": name} for name in names[begin : begin + body["limit"]]]
        end = begin + body["limit"]
        return {"logGroups": shown, **({"nextToken": str(end)} if end < len(names) else {})}

    def _results(self, query_id: str) -> Any:
        self._asked[query_id] += 1
        if self._asked[query_id] < 2:
            return {"status": "Running", "results": []}
        asked = self.started[int(query_id)]
        found = [
            {**event, "@log": f"123456789012:{name}"}
            for name in asked["logGroupNames"]
            for event in self.groups[name]
        ]
        rows = _piped(found, re.split(r" \| ", asked["queryString"]))
        return {"status": "Complete", "results": [_cells(row) for row in rows]}


def refused(kind: str, words: str, status: int = 400) -> web.Response:
    return _json({"__type": f"com.amazonaws.logs#{kind}", "message": words}, status)


def _json(body: Any, status: int = 200) -> web.Response:
    return web.json_response(body, status=status, content_type="application/x-amz-json-1.1")


def _cells(row: Event) -> Any:
    return [{"field": name, "value": value} for name, value in row.items()]


def _piped(rows: list[Any], commands: Sequence[str]) -> Sequence[Event]:
    shown: list[str] = []
    for command in commands:
        verb, _, rest = command.partition(" ")
        match verb:
            case "filter":
                test = _test(rest)
                rows = [row for row in rows if test(row)]
            case "fields":
                shown = rest.split(", ")
            case "sort":
                rows = sorted(rows, key=lambda row: ns_of(row["@timestamp"]), reverse=True)
            case "limit":
                rows = rows[: int(rest)]
            case "stats":
                counting = _COUNTED.fullmatch(command)
                assert counting is not None
                name, field = counting.groups()
                counts = Counter(row.get(field, "") for row in rows)
                return [{field: value, name: str(n)} for value, n in counts.items()]
            case _:
                raise AssertionError(command)
    return [{name: row[name] for name in shown if name in row} for row in rows]


def _test(text: str) -> Test:
    """As Python: the comparisons become names of tests, `and`, `or` and brackets stay."""
    tests: list[Test] = []

    def named(test: Test) -> str:
        tests.append(test)
        return f"t[{len(tests) - 1}](row)"

    def within(found: re.Match[str]) -> str:
        start, end = int(found[1]), int(found[2])
        return named(lambda row: start <= ns_of(row["@timestamp"]) // 10**6 < end)

    def like(found: re.Match[str]) -> str:
        pattern, wanted = re.compile(found[2]), not found[1]
        return named(lambda row: (pattern.search(row["@message"]) is not None) is wanted)

    def among(found: re.Match[str]) -> str:
        field, values = found[1], json.loads(f"[{found[2]}]")
        return named(lambda row: row.get(field) in values)

    for pattern, replaced in ((_LIKE, like), (_WITHIN, within), (_IN, among)):
        text = pattern.sub(replaced, text)
    text = re.sub(r"ispresent\((\S+?)\)", lambda f: named(lambda row: f[1] in row), text)
    compiled = compile(text, "insights", "eval")
    return lambda row: bool(eval(compiled, {"t": tests, "row": row}))  # noqa: S307 - our own text
