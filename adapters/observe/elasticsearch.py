"""Lines of Elasticsearch 7.10+ and OpenSearch, through the search API that they share.

Names of fields are ECS's and OpenTelemetry's unless set. Pages are continued from a timestamp
(`log_page`), not by a point in time: that would live for minutes only, hold segments on the server,
need a right of its own and differ between the two.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from urllib.parse import quote

import httpx
from pydantic import Field, JsonValue, TypeAdapter

from adapters.observe.backend import Answer, Backend, read_body, refusal
from adapters.observe.instants import checked_ns, ns_of, ns_text, to_ns
from adapters.observe.levels import at_least
from adapters.observe.line_filter import stages_of
from adapters.observe.log_entry import HOSTS, LEVELS, TRACE_IDS, Entry, Newest, made
from adapters.observe.log_source import Wanted
from adapters.observe.remembered import Remembered
from tools.capabilities import Interval
from tools.errors import InvalidArguments, UpstreamFailed
from tools.outside_json import Entries, Lenient, OutsideModel, Unread, left_out, parse

# Half of index.max_result_window's default, so that lines of 6 KB fit the read limit of an answer:
# https://www.elastic.co/guide/en/elasticsearch/reference/current/index-modules.html
_MOST: Final = 5_000
_MOST_VALUES: Final = 10_000
# Which fields name a product: ECS, OpenTelemetry, and what Filebeat and Fluent Bit add.
_PRODUCT_FIELDS: Final = (
    "service.name", "resource.attributes.service.name", "service", "app", "application",
    "kubernetes.labels.app_kubernetes_io/name", "kubernetes.labels.app", "kubernetes.container.name",
    "kubernetes.container_name", "container.name", "k8s.deployment.name", "k8s.container.name",
    "resource.attributes.k8s.deployment.name", "kubernetes.pod.name", "kubernetes.pod_name",
    "k8s.pod.name", "resource.attributes.k8s.pod.name",
)  # fmt: skip
# Analysers split other scripts as they like. Shorter ones are in most lines.
_WORD: Final = re.compile(r"[A-Za-z0-9]{3,}")
_REMEMBERED_FOR: Final = timedelta(minutes=5)
# What cannot be grouped by is no field that a product is found by.
_GROUPED: Final = frozenset({"keyword", "constant_keyword", "wildcard"})
_WORDED: Final = _GROUPED | {"text", "match_only_text"}


@dataclass(frozen=True, slots=True)
class LogFields:
    """Where the parts of a line are. An empty name: the usual ones are tried."""

    time: str = "@timestamp"
    message: str = "message"
    level: str = ""
    host: str = ""
    trace_id: str = ""

    @property
    def levels(self) -> Sequence[str]:
        return (self.level,) if self.level else LEVELS

    @property
    def read(self) -> Sequence[str]:
        """All but the time and the product."""
        own = [name for name in (self.host, self.trace_id) if name]
        return tuple(dict.fromkeys((self.message, *own, *self.levels, *HOSTS, *TRACE_IDS)))


USUAL_FIELDS: Final = LogFields()


class _Hit(OutsideModel):
    sort: list[int | float | str] = Field(min_length=1)
    fields: dict[str, list[JsonValue] | None] = Field(default_factory=dict)


class _Hits(OutsideModel):
    hits: Entries[_Hit] = Field(default_factory=list)


class _Bucket(OutsideModel):
    key: str
    doc_count: int


class _Buckets(OutsideModel):
    buckets: Entries[_Bucket] = Field(default_factory=list)


class _Groups(OutsideModel):
    products: _Buckets = _Buckets()


class _Clusters(OutsideModel):
    skipped: int = 0  # of a search over several, with skip_unavailable


class _Found(OutsideModel):
    timed_out: bool = False
    clusters: Lenient[_Clusters] = Field(default_factory=_Clusters, alias="_clusters")
    hits: _Hits
    aggregations: _Groups | None = None


class _Capabilities(OutsideModel):
    fields: dict[str, JsonValue]


class _Cause(OutsideModel):
    type: str = ""
    reason: str = ""


class _Error(_Cause):
    root_cause: Entries[_Cause] = Field(default_factory=list)


class _Failure(OutsideModel):
    error: _Error


_FOUND: Final = TypeAdapter(_Found)
_CAPABILITIES: Final = TypeAdapter(_Capabilities)
_FAILURE: Final = TypeAdapter(_Failure)


class Elasticsearch:
    """Implements `LogSource`. `index` is a name, a pattern such as `logs-*`, or several by comma."""

    most = _MOST

    def __init__(
        self,
        client: httpx.AsyncClient,
        index: str,
        fields: LogFields = USUAL_FIELDS,
        name: str = "Elasticsearch",
    ) -> None:
        self.name = name
        self._backend = Backend(name, client)
        # A part of the index that is gone is no failure of the rest; one that fails is.
        there = "ignore_unavailable=true&allow_no_indices=true"
        self._index = quote(index, safe="*,-_.")
        self._search = f"/{self._index}/_search?{there}&allow_partial_search_results=false"
        self._names = fields
        self._level_types: Remembered[Mapping[str, frozenset[str]]] = Remembered(_REMEMBERED_FOR)

    def filters(self, text: str) -> bool:
        """No text: analysed words are neither substrings nor in their case."""
        return not text.strip()

    async def fields(self, interval: Interval) -> Sequence[str]:
        del interval
        asked = [f"{name}{end}" for name in _PRODUCT_FIELDS for end in ("", ".keyword")]
        return [name for name, types in (await self._types(asked)).items() if types & _GROUPED]

    async def values(self, field: str, interval: Interval) -> Mapping[str, str]:
        """The most frequent ones."""
        query = self._bool([self._range(to_ns(interval.start), to_ns(interval.end))])
        found = await self._grouped(field, query)
        return {value: value for value in found}

    async def newest(self, wanted: Wanted, limit: int) -> Newest:
        """By the timestamp alone, in nanoseconds for any mapping of the index."""
        order: JsonValue = {
            "order": "desc",
            "numeric_type": "date_nanos",
            "unmapped_type": "date_nanos",  # an index without the field has no lines here
        }
        unread = Unread()
        found = await self._found(
            {
                "size": limit,
                "query": await self._selecting(wanted),
                "sort": [{self._names.time: order}],
                "fields": list(dict.fromkeys((*self._names.read, wanted.field))),
                "_source": False,
                "track_total_hits": False,
            },
            unread,
        )
        return await made(found.hits.hits, self._entry, limit, unread.count)

    async def counts(self, wanted: Wanted) -> Mapping[str, int]:
        return await self._grouped(wanted.field, await self._selecting(wanted))

    async def _types(self, names: Sequence[str]) -> Mapping[str, frozenset[str]]:
        params = {"fields": ",".join(names), "ignore_unavailable": "true"}
        answer = await self._backend.get(f"/{self._index}/_field_caps", params)
        self._check(answer)
        found = await read_body(answer, _CAPABILITIES)
        if found is None:
            raise UpstreamFailed(f"{self.name}: not a list of fields", answer.status)
        return {
            name: frozenset(types)
            for name, types in found.fields.items()
            if isinstance(types, dict)
        }

    async def _grouped(self, field: str, query: JsonValue) -> Mapping[str, int]:
        terms: JsonValue = {"terms": {"field": field, "size": _MOST_VALUES}}
        body: dict[str, JsonValue] = {
            "size": 0, "query": query, "aggs": {"products": terms}, "track_total_hits": False,
        }  # fmt: skip
        found = await self._found(body)
        if found.aggregations is None:
            return {}  # no index is there
        return {one.key: one.doc_count for one in found.aggregations.products.buckets}

    async def _found(self, body: Mapping[str, JsonValue], unread: Unread | None = None) -> _Found:
        answer = await self._backend.post_json(self._search, json.dumps(body).encode())
        self._check(answer)
        found = await read_body(answer, _FOUND, unread)
        if found is None:
            raise UpstreamFailed(f"{self.name}: not an answer to a search", answer.status)
        if found.timed_out:
            raise UpstreamFailed(f"{self.name}: the search timed out, what it found is not whole")
        left_out(found.clusters.skipped)
        return found

    async def _selecting(self, wanted: Wanted) -> JsonValue:
        levels = [await self._level(wanted.min_level)] if wanted.min_level else []
        return self._bool(
            [
                self._range(wanted.start_ns, wanted.end_ns),
                {"terms": {wanted.field: list(wanted.values)}},
                *levels,
                *self._words(wanted.filter),
            ]
        )

    def _range(self, start_ns: int, end_ns: int) -> JsonValue:
        times: dict[str, JsonValue] = {"gte": ns_text(start_ns), "lt": ns_text(end_ns)}
        return {"range": {self._names.time: {**times, "format": "strict_date_optional_time_nanos"}}}

    async def _level(self, minimum: str) -> JsonValue:
        levels = at_least(minimum)
        known = await self._level_types.get("", lambda: self._types(self._names.levels))
        spelled: list[JsonValue] = [
            *sorted({way for one in levels for way in (one, one.upper(), one.title())})
        ]
        numbers: list[JsonValue] = [*sorted(int(one) for one in levels if one.isdigit())]
        pushed: list[JsonValue] = [
            {"terms": {name: spelled if types <= _WORDED else numbers}}
            for name, types in known.items()
        ]
        none: list[JsonValue] = [{"exists": {"field": name}} for name in known]
        words = " ".join(sorted(one for one in levels if len(one) > 1 and one.isalpha()))
        stated: dict[str, JsonValue] = {
            "must_not": none,
            "must": [{"match": {self._names.message: words}}],
        }
        return {"bool": {"should": [*pushed, {"bool": stated}], "minimum_should_match": 1}}

    def _words(self, text: str) -> list[JsonValue]:
        """Selects more than the filter does, never less: each of its words within some word."""
        wanted = [one for one in stages_of(text) if one.wanted and not one.is_pattern]
        return [
            {"wildcard": {self._names.message: {"value": f"*{word}*", "case_insensitive": True}}}
            for stage in wanted
            for word in dict.fromkeys(_WORD.findall(stage.operand))
        ]

    def _bool(self, filters: list[JsonValue]) -> JsonValue:
        return {"bool": {"filter": filters}}

    def _entry(self, hit: _Hit) -> Entry:
        known = {name: _text(values) for name, values in hit.fields.items() if values}
        names = self._names
        own = {"level": names.level, "host": names.host, "trace_id": names.trace_id}
        labels = {**known, **{ours: known[its] for ours, its in own.items() if its in known}}
        line = labels.pop(names.message, "")
        at = hit.sort[0]
        return Entry(checked_ns(ns_of(at) if isinstance(at, str) else int(at)), line, labels)

    def _check(self, answer: Answer) -> None:
        if answer.ok:
            return
        try:
            error = parse(_FAILURE, answer.body).error
        except ValueError:
            raise refusal(answer) from None
        cause = error.root_cause[0] if error.root_cause else error
        words = f"{cause.type}: {cause.reason or 'no reason given'}"
        if answer.status == 400 and "allow_expensive_queries" in words:
            raise InvalidArguments(
                f"{self.name} is set up without searches within words; leave the filter out: {words}"
            )
        raise refusal(answer, words)


def _text(values: Sequence[JsonValue]) -> str:
    first = values[0]
    return first if isinstance(first, str) else json.dumps(first)
