"""A fake of Loki 3.7: its times, limits, order, ties, text errors and label categories."""

import json
import random
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from aiohttp import web

MAX_ENTRIES = 5000
MAX_RANGE_NS = (30 * 24 + 1) * 3600 * 10**9
_MATCHER = re.compile(r'\s*([A-Za-z_]\w*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*")\s*(,|$)')
_STAGE = re.compile(r'\s*(\|=|\|~|!=|!~)\s*("(?:[^"\\]|\\.)*"|`[^`]*`)')
_LABEL_STAGE = re.compile(r'\s*\|\s*([A-Za-z_]\w*)\s*(=~|=)\s*("(?:[^"\\]|\\.)*")')
_REGEXP_STAGE = re.compile(r"\s*\|\s*regexp\s*`([^`]*)`")
_BOOLEAN_STAGE = re.compile(r"\s*\|\s*(?=\()")
_PREDICATE = re.compile(r'\s*([A-Za-z_]\w*)\s*(=~|=)\s*("(?:[^"\\]|\\.)*")')
_COUNTING = re.compile(
    r"sum by \((\w+)\) \(count_over_time\((.*) \[(\d+)s\](?: offset (\d+)s)?\)\)", re.DOTALL
)
_MARKED = re.compile(r'label_replace\((.*), "(\w+)", "(\w+)", "", ""\)', re.DOTALL)
_SELECTOR = re.compile(r'\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\}')


@dataclass(frozen=True)
class Stored:
    """One entry. `labels` select the stream; `metadata` was pushed or detected with the line."""

    ts_ns: int
    line: str
    labels: Mapping[str, str]
    metadata: Mapping[str, str] = field(default_factory=dict)
    extracted: Mapping[str, str] = field(default_factory=dict, compare=False)  # by a query's stages

    def key(self) -> str:
        return json.dumps([dict(self.labels), self.ts_ns, self.line], sort_keys=True)


class Refusal(Exception):
    """An HTTP error, as Loki words it: text/plain."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class LokiServer:
    """Holds entries and answers queries. `tenant` set means auth_enabled."""

    def __init__(
        self, entries: Iterable[Stored], tenant: str = "", max_entries: int = MAX_ENTRIES
    ) -> None:
        self.max_entries = max_entries
        # Equal (labels, timestamp, line) are stored once.
        self.entries = list({entry.key(): entry for entry in entries}.values())
        self.tenant = tenant
        self.queries: list[Mapping[str, str]] = []
        self.counted: list[str] = []
        self.most_joined = 100  # of what is counted in one request
        self._shuffle = random.Random(5)

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/loki/api/v1/push", self._push)
        app.router.add_get("/loki/api/v1/query_range", self._guarded(self._query_range))
        app.router.add_post("/loki/api/v1/query", self._posted(self._query))
        app.router.add_post("/loki/api/v1/series", self._posted(self._series))
        app.router.add_get("/loki/api/v1/labels", self._guarded(self._labels))
        app.router.add_get("/loki/api/v1/label/{name}/values", self._guarded(self._label_values))
        return app

    def _guarded(
        self, answer: Callable[[web.Request], web.Response]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handler(request: web.Request) -> web.StreamResponse:
            try:
                self._check_tenant(request)
                return answer(request)
            except Refusal as refusal:
                return web.Response(status=refusal.status, text=refusal.text)

        return handler

    def _posted(
        self, answer: Callable[[web.Request, Mapping[str, list[str]]], web.Response]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handler(request: web.Request) -> web.StreamResponse:
            form = await request.post()
            fields = {name: [str(one) for one in form.getall(name)] for name in form}
            return await self._guarded(lambda request: answer(request, fields))(request)

        return handler

    async def _push(self, request: web.Request) -> web.Response:
        for stream in (await request.json())["streams"]:
            self.entries += [
                Stored(int(ts_ns), line, stream["stream"], metadata)
                for ts_ns, line, metadata in stream["values"]
            ]
        return web.Response(status=204)

    def _check_tenant(self, request: web.Request) -> None:
        if self.tenant and "X-Scope-OrgID" not in request.headers:
            raise Refusal(401, "no org id\n")

    def _visible(self, request: web.Request) -> Sequence[Stored]:
        other = self.tenant and request.headers.get("X-Scope-OrgID") != self.tenant
        return [] if other else self.entries

    def _query_range(self, request: web.Request) -> web.Response:
        params = request.query
        self.queries.append(dict(params))
        start, end = _times(params)
        limit = _limit(params.get("limit", "100"), self.max_entries)
        if params.get("direction", "backward") not in {"forward", "backward"}:
            raise Refusal(400, "invalid direction\n")
        wanted = _predicate(params["query"])
        found = [
            entry
            for entry in self._visible(request)
            if start <= entry.ts_ns < end and wanted(entry)
        ]
        self._shuffle.shuffle(found)  # which of a tie survive the limit is not defined
        newest = sorted(found, key=lambda entry: -entry.ts_ns)[:limit]
        flags = request.headers.get("X-Loki-Response-Encoding-Flags", "")
        streams = _categorized(newest) if "categorize-labels" in flags else _flat(newest)
        return _success({"resultType": "streams", "result": streams})

    def _query(self, request: web.Request, form: Mapping[str, list[str]]) -> web.Response:
        """Only `sum by (label) (count_over_time(... [Ns] offset Ns))`, marked ones joined by `or`."""
        text, end = form["query"][0], _time(form["time"][0])
        self.counted.append(text)
        parts = text.split(" or label_replace(")
        if len(parts) > self.most_joined:
            raise Refusal(400, "maximum number of series (500) reached for a single query\n")
        rows: list[object] = []
        for part in [parts[0], *(f"label_replace({one}" for one in parts[1:])]:
            marked = _MARKED.fullmatch(part)
            inner, *mark = marked.groups() if marked else (part,)
            rows += self._counts(request, inner, end, dict([mark] if mark else []))
        return _success({"resultType": "vector", "result": rows})

    def _counts(
        self, request: web.Request, text: str, end: int, marks: Mapping[str, str]
    ) -> list[object]:
        counting = _COUNTING.fullmatch(text)
        if counting is None:
            raise Refusal(400, "parse error at line 1, col 1: syntax error\n")
        label, inner, seconds, offset = counting.groups()
        at = end - int(offset or 0) * 10**9
        wanted = _predicate(inner)
        counts: dict[str, int] = defaultdict(int)
        for entry in self._visible(request):
            if at - int(seconds) * 10**9 < entry.ts_ns <= at and wanted(entry):
                counts[entry.labels.get(label, "")] += 1
        return [
            {"metric": dict(marks) | {label: k}, "value": [end // 10**9, str(n)]}
            for k, n in counts.items()
        ]

    def _series(self, request: web.Request, form: Mapping[str, list[str]]) -> web.Response:
        start, end = _times({name: values[0] for name, values in form.items()})
        wanted = [_predicate(one) for one in form["match[]"]]
        found = {
            json.dumps(dict(entry.labels), sort_keys=True)
            for entry in self._visible(request)
            if start <= entry.ts_ns < end and any(one(entry) for one in wanted)
        }
        return _success([json.loads(one) for one in sorted(found)])

    def _labels(self, request: web.Request) -> web.Response:
        start, end = _times(request.query)
        names = {
            name
            for entry in self._visible(request)
            if start <= entry.ts_ns < end
            for name in entry.labels
        }
        return _success(sorted(names))

    def _label_values(self, request: web.Request) -> web.Response:
        start, end = _times(request.query)
        name = request.match_info["name"]
        values = {
            entry.labels[name]
            for entry in self._visible(request)
            if start <= entry.ts_ns < end and name in entry.labels
        }
        return _success(sorted(values))


def _success(data: object) -> web.Response:
    return web.json_response({"status": "success", "data": data})


def _times(params: Mapping[str, str]) -> tuple[int, int]:
    start, end = _time(params["start"]), _time(params["end"])
    if end <= start:
        raise Refusal(400, "end timestamp must not be before or equal to start time\n")
    if end - start > MAX_RANGE_NS:
        hours = (end - start) // (3600 * 10**9)
        raise Refusal(
            400, f"the query time range exceeds the limit (query length: {hours}h, limit: 30d1h)\n"
        )
    return start, end


def _time(text: str) -> int:
    if re.fullmatch(r"\d{1,10}(\.\d+)?", text):
        return int(float(text) * 10**9)
    if re.fullmatch(r"\d+", text):
        return int(text)  # 13 digits of milliseconds become an instant in 1970
    raise Refusal(400, f'cannot parse "{text}" to a valid timestamp\n')


def _limit(text: str, most: int) -> int:
    if not text.isdigit() or int(text) < 1:
        raise Refusal(400, "limit must be a positive value\n")
    if int(text) > most:
        raise Refusal(
            400,
            f"max entries limit per query exceeded, limit > max_entries_limit ({text} > {most})\n",
        )
    return int(text)


def _predicate(query: str) -> Callable[[Stored], bool]:
    selector = _SELECTOR.match(query)
    if selector is None:
        raise Refusal(400, "parse error at line 1, col 1: syntax error: unexpected token\n")
    tests = _matchers(selector.group(1))
    rest = query[selector.end() :]
    while rest.strip():
        test, rest = _stage(rest)
        tests.append(test)
    return lambda entry: all(test(entry) for test in tests)


def _matchers(text: str) -> list[Callable[[Stored], bool]]:
    tests, restrictive, at = [], False, 0
    while at < len(text):
        found = _MATCHER.match(text, at)
        if found is None:
            raise Refusal(
                400, f"parse error at line 1, col {at + 2}: syntax error: unexpected token\n"
            )
        name, operator, value = found.group(1), found.group(2), json.loads(found.group(3))
        tests.append(_label_test(name, operator, value, metadata=False))
        restrictive = restrictive or not _can_be_empty(operator, value)
        at = found.end()
    if not restrictive:
        raise Refusal(
            400,
            "parse error : queries require at least one regexp or equality matcher that does not "
            "have an empty-compatible value\n",
        )
    return tests


def _can_be_empty(operator: str, value: str) -> bool:
    if operator in {"!=", "!~"}:
        return True
    return re.fullmatch(value, "") is not None if operator == "=~" else value == ""


def _stage(text: str) -> tuple[Callable[[Stored], bool], str]:
    line = _STAGE.match(text)
    if line is not None:
        return _line_test(line.group(1), line.group(2)), text[line.end() :]
    extraction = _REGEXP_STAGE.match(text)
    if extraction is not None:
        return _extracting(extraction.group(1)), text[extraction.end() :]
    boolean = _BOOLEAN_STAGE.match(text)
    if boolean is not None:
        return _disjunction(text, boolean.end() + 1)
    label = _LABEL_STAGE.match(text)
    if label is not None:
        value = json.loads(label.group(3))
        return _label_test(label.group(1), label.group(2), value, metadata=True), text[
            label.end() :
        ]
    raise Refusal(
        400, f"parse error at line 1, col 19: syntax error: unexpected {text.strip()[:12]}\n"
    )


def _extracting(pattern: str) -> Callable[[Stored], bool]:
    """The regexp stage: its named groups become labels of the line; it drops nothing."""
    compiled = re.compile(pattern)

    def extract(entry: Stored) -> bool:
        found = compiled.search(entry.line)
        extracted = {k: v for k, v in found.groupdict().items() if v} if found else {}
        cast("dict[str, str]", entry.extracted).update(extracted)
        return True

    return extract


def _disjunction(text: str, at: int) -> tuple[Callable[[Stored], bool], str]:
    """`(a or (b and c))`, from behind its opening bracket. `and` binds more strongly."""
    alternatives: list[list[Callable[[Stored], bool]]] = [[]]
    while True:
        rest = text[at:].lstrip()
        if rest.startswith("("):
            test, rest = _disjunction(rest, 1)
        else:
            found = _PREDICATE.match(rest)
            if found is None:
                raise Refusal(400, f"parse error at line 1, col 19: unexpected {rest[:12]}\n")
            test = _label_test(found[1], found[2], json.loads(found[3]), metadata=True)
            rest = rest[found.end() :]
        alternatives[-1].append(test)
        word = re.match(r"\s*(\)|and\b|or\b)", rest)
        if word is None:
            raise Refusal(400, f"parse error at line 1, col 19: unexpected {rest[:12]}\n")
        rest = rest[word.end() :]
        if word[1] == ")":
            return _any_of(alternatives), rest
        if word[1] == "or":
            alternatives.append([])
        text, at = rest, 0


def _any_of(groups: Sequence[Sequence[Callable[[Stored], bool]]]) -> Callable[[Stored], bool]:
    return lambda entry: any(all(one(entry) for one in each) for each in groups)


def _line_test(operator: str, literal: str) -> Callable[[Stored], bool]:
    operand = literal[1:-1] if literal[0] == "`" else json.loads(literal)
    if operator in {"|=", "!="}:
        return lambda entry: (operand in entry.line) is (operator == "|=")
    pattern = re.compile(operand)
    return lambda entry: (pattern.search(entry.line) is not None) is (operator == "|~")


def _label_test(
    name: str, operator: str, value: str, *, metadata: bool
) -> Callable[[Stored], bool]:
    def have(entry: Stored) -> str:
        # Detected levels are metadata: a selector sees nothing of them.
        beside = {**entry.extracted, **entry.metadata} if metadata else {}
        return beside.get(name, "") or entry.labels.get(name, "")

    if operator in {"=~", "!~"}:
        pattern = re.compile(value)
        return lambda entry: (pattern.fullmatch(have(entry)) is not None) is (operator == "=~")
    return lambda entry: (have(entry) == value) is (operator == "=")


def _categorized(entries: Sequence[Stored]) -> list[object]:
    streams: dict[str, list[Stored]] = defaultdict(list)
    for entry in entries:
        streams[json.dumps(dict(entry.labels), sort_keys=True)].append(entry)
    return [
        {
            "stream": json.loads(labels),
            "values": [
                [str(entry.ts_ns), entry.line, {"structuredMetadata": dict(entry.metadata)}]
                for entry in of_stream
            ],
        }
        for labels, of_stream in streams.items()
    ]


def _flat(entries: Sequence[Stored]) -> list[object]:
    """Without categories every distinct set of metadata is a stream of its own."""
    streams: dict[str, list[Stored]] = defaultdict(list)
    for entry in entries:
        merged = {**entry.labels, **entry.metadata}
        streams[json.dumps(merged, sort_keys=True)].append(entry)
    return [
        {
            "stream": json.loads(labels),
            "values": [[str(entry.ts_ns), entry.line] for entry in of_stream],
        }
        for labels, of_stream in streams.items()
    ]
