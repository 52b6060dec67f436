"""A fake of Elasticsearch's and OpenSearch's search API over flat documents.

Fields are keywords but `message`, which is analysed: its words count, in lower case, not its text.
"""

import fnmatch
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from adapters.observe.instants import ns_of

Document = Mapping[str, str]
MAX_RESULT_WINDOW = 10_000


class ElasticsearchServer:
    """Holds documents with a `@timestamp`. `searches` are the bodies it was asked with.

    `types` are those of fields that are no keywords.
    """

    def __init__(
        self, documents: Sequence[Document], types: Mapping[str, str] | None = None
    ) -> None:
        self.documents = list(documents)
        self.types = {"message": "text", "@timestamp": "date_nanos", **(types or {})}
        self.searches: list[Any] = []
        self._shuffle = random.Random(5)

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/{index}/_search", self._search)
        app.router.add_get("/{index}/_field_caps", self._field_caps)
        return app

    async def _field_caps(self, request: web.Request) -> web.Response:
        there = {name for document in self.documents for name in document}
        return web.json_response(
            {
                "indices": [request.match_info["index"]],
                "fields": {
                    name: {kind: {"type": kind, "searchable": True, "aggregatable": True}}
                    for name in request.query["fields"].split(",")
                    if name in there and (kind := self.types.get(name, "keyword"))
                },
            }
        )

    async def _search(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.searches.append(body)
        if body["size"] > MAX_RESULT_WINDOW:
            why = f"Result window is too large, from + size must be less than or equal to: [{MAX_RESULT_WINDOW}]"
            return refused(400, "illegal_argument_exception", why)
        found = [one for one in self.documents if matches(body["query"], one)]
        self._shuffle.shuffle(found)
        answer: dict[str, Any] = {"took": 1, "timed_out": False}
        answer["_shards"] = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
        hits = self._hits(found, body) if body["size"] else []
        answer["hits"] = {"max_score": None, "hits": hits}
        if "aggs" in body:
            field = body["aggs"]["products"]["terms"]["field"]
            counts = Counter(one[field] for one in found if field in one)
            buckets = [{"key": key, "doc_count": n} for key, n in counts.most_common(1000)]
            answer["aggregations"] = {"products": {"sum_other_doc_count": 0, "buckets": buckets}}
        return web.json_response(answer)

    def _hits(self, found: Sequence[Document], body: Any) -> list[Any]:
        assert body["sort"][0]["@timestamp"]["numeric_type"] == "date_nanos"
        newest = sorted(found, key=lambda one: ns_of(one["@timestamp"]), reverse=True)
        return [
            {
                "_index": "logs-1",
                "_id": str(id(one)),
                "_score": None,
                "fields": {name: [one[name]] for name in body["fields"] if name in one},
                "sort": [ns_of(one["@timestamp"])],
            }
            for one in newest[: body["size"]]
        ]


def refused(status: int, kind: str, reason: str) -> web.Response:
    cause = {"type": kind, "reason": reason}
    return web.json_response(
        {"error": {"root_cause": [cause], **cause}, "status": status}, status=status
    )


def matches(query: Any, document: Document) -> bool:
    (kind, of), *_ = query.items()
    if kind == "bool":
        should = [matches(one, document) for one in of.get("should", ())]
        return (
            all(matches(one, document) for one in (*of.get("filter", ()), *of.get("must", ())))
            and not any(matches(one, document) for one in of.get("must_not", ()))
            and sum(should) >= of.get("minimum_should_match", 0)
        )
    if kind == "exists":
        return bool(document.get(of["field"]))
    (field, wanted), *_ = of.items()
    value = document.get(field, "")
    match kind:
        case "range":
            return ns_of(wanted["gte"]) <= ns_of(value) < ns_of(wanted["lt"])
        case "terms":
            return value in wanted
        case "match":
            return bool(set(_words(value)) & set(_words(wanted)))
        case "wildcard":
            assert wanted["case_insensitive"]
            pattern = wanted["value"].lower()
            return any(fnmatch.fnmatchcase(word, pattern) for word in _words(value))
    raise AssertionError(kind)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
