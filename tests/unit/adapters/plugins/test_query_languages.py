"""What Elasticsearch and Datadog need: a query in JSON, lists, several headers, basic auth."""

import sys
from base64 import b64encode
from functools import cache
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from adapters.plugins.manifest import ReadManifest, checked
from adapters.plugins.parameters import MAX_FREE_BYTES, MAX_FREE_DEPTH
from adapters.plugins.tool import contract_of, placed
from adapters.plugins.yaml_source import ManifestInvalid, parse_yaml
from tools.schema import input_schema

ELASTICSEARCH = """\
name: search_errors
description: Error documents of the log index. Use the query DSL.
parameters:
  query: {type: object, description: "A query clause of the query DSL"}
  sort:
    type: array
    required: false
    items: {type: object, properties: {field: {type: string}, order: {type: string, enum: [asc, desc]}}}
  size: {type: integer, minimum: 1, maximum: 100, default: 20}
endpoint:
  method: POST
  read_only: true
  url: https://search.example.com/logs-*/_search
  body:
    query: {bool: {filter: ["{query}", {term: {env: production}}]}}
    sort: "{sort}"
    size: "{size}"
    _source: [message, "@timestamp"]
auth: {type: basic, user: kortex, password: "${ES_PASSWORD}"}
allowed_sessions: ["*"]
"""
DATADOG = """\
name: datadog_metrics
description: Points of a Datadog metric query.
parameters:
  query: {type: string}
endpoint:
  url: https://api.datadoghq.example/api/v1/query
  headers: {X-Requested-By: kortex}
auth: {type: headers, values: {DD-API-KEY: "${DD_API_KEY}", DD-APPLICATION-KEY: "${DD_APP_KEY}"}}
allowed_sessions: ["*"]
"""
ENV = {"ES_PASSWORD": "pass:wörd", "DD_API_KEY": "api-key-1", "DD_APP_KEY": "app-key-2"}


@cache
def manifest(text: str) -> ReadManifest:
    return checked(parse_yaml(text, "plugin.yaml"))


def arguments(text: str, given: object) -> dict[str, Any]:
    model: type[BaseModel] = contract_of(manifest(text)).input
    return model.model_validate(given).model_dump(exclude_none=True)


def test_a_model_is_shown_an_object_and_a_list_of_objects() -> None:
    schema: Any = input_schema(contract_of(manifest(ELASTICSEARCH)).input)

    assert schema["properties"]["query"]["type"] == "object"
    assert schema["properties"]["sort"]["items"]["properties"]["order"]["enum"] == ["asc", "desc"]
    assert schema["required"] == ["query"]


def test_an_argument_of_any_type_is_placed_in_the_body() -> None:
    query = {"match": {"message": "timeout"}}
    given = arguments(ELASTICSEARCH, {"query": query})

    assert placed(manifest(ELASTICSEARCH).manifest.endpoint, given) == (
        "https://search.example.com/logs-*/_search",
        {
            "query": {"bool": {"filter": [query, {"term": {"env": "production"}}]}},
            "size": 20,
            "_source": ["message", "@timestamp"],
        },
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(), json_values, max_size=3))
def test_no_query_escapes_its_place_in_the_body(query: dict[str, Any]) -> None:
    _, body = placed(manifest(ELASTICSEARCH).manifest.endpoint, {"query": query, "size": 1})

    assert body == {
        "query": {"bool": {"filter": [query, {"term": {"env": "production"}}]}},
        "size": 1,
        "_source": ["message", "@timestamp"],
    }


def nested(depth: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(depth):
        value = {"bool": value}
    return value


@pytest.mark.parametrize(
    "query",
    [
        nested(MAX_FREE_DEPTH + 1),
        nested(sys.getrecursionlimit() - 500),
        {"match": "x" * MAX_FREE_BYTES},
        {"term": {"trace": 2**70}},
        {"term": {"half": "\ud800"}},
        ["not", "an", "object"],
    ],
    ids=["deep", "very deep", "large", "128 bits", "half a character", "a list"],
)
def test_a_dangerous_query_is_refused_with_a_message(query: object) -> None:
    with pytest.raises(ValidationError):
        arguments(ELASTICSEARCH, {"query": query})


def test_a_query_at_the_limit_passes() -> None:
    assert orjson.dumps(arguments(ELASTICSEARCH, {"query": nested(MAX_FREE_DEPTH - 1)})["query"])


def test_a_free_query_has_unknown_products() -> None:
    both = ELASTICSEARCH.replace("parameters:", "parameters:\n  product: {type: string}")
    assert not contract_of(manifest(both)).products.can_be_told


def test_basic_auth_is_sent_as_the_standard_says_and_masked_in_both_forms() -> None:
    pair = b64encode(b"kortex:pass:word").decode()
    env = {**ENV, "ES_PASSWORD": "pass:word"}

    assert manifest(ELASTICSEARCH).headers(env) == {"Authorization": f"Basic {pair}"}
    assert manifest(ELASTICSEARCH).secrets(env) == {"pass:word", pair}


def test_several_headers_are_sent_and_each_is_a_secret() -> None:
    assert manifest(DATADOG).headers(ENV) == {
        "X-Requested-By": "kortex",
        "DD-API-KEY": "api-key-1",
        "DD-APPLICATION-KEY": "app-key-2",
    }
    assert manifest(DATADOG).secrets(ENV) == {"api-key-1", "app-key-2"}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("query: {type: string}", "query: {type: object}", "cannot be in a URL"),
        ("X-Requested-By: kortex", "Authorization: Basic x", "belongs into auth"),
        ("X-Requested-By: kortex", "X-Key: '${DD_API_KEY}'", "belongs into auth"),
        ("X-Requested-By: kortex", "Host: elsewhere", "cannot be set"),
        ('DD-API-KEY: "${DD_API_KEY}"', "DD-API-KEY: plain", "from the environment"),
        ("DD-API-KEY:", "Cookie:", "cannot be set"),
        ("  url:", "  body: {a: b}\n  url:", "only a POST has a body"),
        ("query: {type: string}", "query: {type: array}", "every array has them"),
        (
            "query: {type: string}",
            "query: {type: string, items: {type: string}}",
            "belong to an array",
        ),
    ],
)
def test_an_unworkable_manifest_is_refused(old: str, new: str, words: str) -> None:
    with pytest.raises(ManifestInvalid, match=words):
        contract_of(manifest(DATADOG.replace(old, new)))


def test_a_body_may_name_declared_parameters_only() -> None:
    with pytest.raises(ManifestInvalid, match="no parameter is called sice"):
        manifest(ELASTICSEARCH.replace('"{size}"', '"{sice}"'))


def test_without_its_variable_a_plugin_is_not_loaded() -> None:
    with pytest.raises(ManifestInvalid, match="DD_APP_KEY is not set"):
        manifest(DATADOG).headers({"DD_API_KEY": "x"})
