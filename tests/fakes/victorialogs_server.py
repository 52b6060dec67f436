"""A fake of VictoriaLogs: its LogsQL queries, JSON lines in no order, text errors."""

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from aiohttp import web

Row = Mapping[str, str]
Test = Callable[[Row], bool]
_STRING = r'"(?:[^"\\]|\\.)*"'
_TIME = re.compile(r"_time:\[(\S+), (\S+)\)")
_TERM = re.compile(rf"(!?)(_msg|{_STRING}):(in\((.*?)\)|~({_STRING})|({_STRING}))")
_SORTED = re.compile(r"sort by \(_time desc\) limit (\d+)")
_COUNTED = re.compile(rf"stats by \(({_STRING})\) count\(\) kortex_lines")


class VictoriaLogsServer:
    """Holds rows, each with `_time` and `_msg`. `queries` are those it was asked."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = list(rows)
        self.queries: list[str] = []
        self._shuffle = random.Random(5)

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/select/logsql/{what}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        query, *pipes = [one.strip() for one in re.split(r" \| ", form["query"])]
        self.queries.append(form["query"])
        try:
            test, rest = _all_of(query)
        except ValueError:
            test, rest = _never, query
        if rest:
            return web.Response(status=400, text=f"cannot parse query [{query}]: unexpected {rest}")
        found = [row for row in self.rows if test(row)]
        match request.match_info["what"]:
            case "query":
                lines = self._piped(found, pipes)
                return web.Response(text="".join(f"{json.dumps(line)}\n" for line in lines))
            case "field_names":
                values = Counter(name for row in found for name in row)
            case _:
                values = Counter(row.get(form["field"], "") for row in found)
        shown = [{"value": value, "hits": hits} for value, hits in values.items()]
        return web.json_response({"values": shown})

    def _piped(self, rows: list[Row], pipes: Sequence[str]) -> Sequence[Row]:
        self._shuffle.shuffle(rows)
        counted = _COUNTED.fullmatch(pipes[0])
        if counted is not None:
            field = json.loads(counted[1])
            counts = Counter(row.get(field, "") for row in rows)
            return [{field: value, "kortex_lines": str(n)} for value, n in counts.items()]
        limit = _SORTED.fullmatch(pipes[0])
        assert limit is not None
        newest = sorted(rows, key=lambda row: row["_time"], reverse=True)[: int(limit[1])]
        kept = json.loads(f"[{pipes[1].removeprefix('fields ')}]")
        return [{name: row[name] for name in kept if name in row} for row in newest]


def _never(_row: Row) -> bool:
    return False


def _all_of(text: str) -> tuple[Test, str]:
    """Alternatives of conjunctions, up to the end or a closing bracket, and what is behind it."""
    alternatives: list[list[Test]] = [[]]
    while text and not text.startswith(")"):
        if text.startswith("or "):
            alternatives.append([])
            text = text[3:].lstrip()
            continue
        test, text = _one(text)
        alternatives[-1].append(test)
        text = text.lstrip()
    return (lambda row: any(all(test(row) for test in each) for each in alternatives)), text


def _one(text: str) -> tuple[Test, str]:
    if text.startswith("("):
        test, rest = _all_of(text[1:])
        return test, rest[1:]
    times = _TIME.match(text)
    if times is not None:
        start, end = times.groups()
        return (lambda row: start <= row["_time"] < end), text[times.end() :]
    term = _TERM.match(text)
    if term is None:
        raise ValueError(text)
    negated, field, _filter, values, pattern, exact = term.groups()
    name = field if field == "_msg" else json.loads(field)
    return _not(_test(name, values, pattern, exact), bool(negated)), text[term.end() :]


def _test(name: str, values: str | None, pattern: str | None, exact: str | None) -> Test:
    if values is not None:
        known = json.loads(f"[{values}]")
        return lambda row: row.get(name, "") in known
    if pattern is not None:
        compiled = re.compile(json.loads(pattern))
        return lambda row: compiled.search(row.get(name, "")) is not None
    assert exact == '""'
    return lambda row: not row.get(name)


def _not(test: Test, negated: bool) -> Test:
    return (lambda row: not test(row)) if negated else test
