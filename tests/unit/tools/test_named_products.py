"""A foreign tool cannot reach another team's product, wherever its arguments name it."""

from collections.abc import Callable

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ConfigDict, JsonValue

from tests.fakes.capabilities import call_context
from tests.fakes.tools import contract
from tools.admission import parsed_arguments
from tools.contract import ToolInput
from tools.named_products import named_products
from tools.products import FOREIGN_QUERY, Reading, refusal, usual_scope

Form = Callable[[str], JsonValue]

INSIDE = call_context(products=("checkout", "web"), reading=Reading.PRODUCTS)

FORMS: dict[str, Form] = {
    "a nested object": lambda name: {"filter": {"service": name}},
    "a list of objects": lambda name: {"filters": [{"limit": 1}, {"service": name}]},
    "a list beside an own product": lambda name: {"services": ["checkout", name]},
    "a dotted key": lambda name: {"match": {"service.name": name}},
    "a camel-case key": lambda name: {"where": {"serviceName": name}},
    "an operator object": lambda name: {"filter": {"service": {"eq": name}}},
    "an operator with a list": lambda name: {"filter": {"service": {"in": ["web", name]}}},
    "a field and its value": lambda name: {"conditions": [{"field": "service", "value": name}]},
    "a field, an operator, values": lambda name: {
        "all": {"key": "app", "op": "in", "values": [name]}
    },
    "a selector in a text": lambda name: {"query": f'{{service="{name}"}} |= "error"'},
    "a search term": lambda name: {"q": f"level:error AND service:{name}"},
    "SQL": lambda name: {"sql": f"… from logs where app = '{name}' limit 5"},
    "a list in SQL": lambda name: {"sql": f"… where service_name in ('web', '{name}')"},
    "a query string": lambda name: {"path": f"/logs?service={name}&limit=10"},
    "deep": lambda name: {"a": [{"b": [{"c": {"d": [{"product": [name]}]}}]}]},
}
# Each reads more than the channel's own products, though it names none of another team.
WILDCARDS: list[JsonValue] = [
    {"service": "checkout", "filter": {"service": "*"}},
    {"filter": {"service": "check*"}},
    {"filter": {"service": ["checkout", "%"]}},
    {"filter": {"service": {"ne": "checkout"}}},
    {"filter": {"service": {"$not": {"eq": "checkout"}}}},
    {"filter": {"field": "service", "op": "!=", "value": "checkout"}},
    {"filter": {"field": "service", "op": "regex", "value": "web"}},
    {"query": '{service=~"check.*"}'},
    {"query": '{service=~"checkout"}'},
    {"query": 'service != "checkout"'},
    {"query": "service:*"},
    {"query": "app not in (checkout)"},
    {"query": "app like 'check%'"},
    {"query": 'service=""'},
]
HARMLESS: list[JsonValue] = [
    {"query": "connection refused", "limit": 5},
    {"query": "the service was slow, payments said"},
    {"filter": {"level": "error", "name": "payments"}},
    {"note": "a microservice architecture", "n": 2**63 - 1, "x": None},
]


class AnyInput(ToolInput):
    model_config = ConfigDict(extra="allow")


FOREIGN = contract(input=AnyInput, products=FOREIGN_QUERY)


def refused(arguments: JsonValue) -> str | None:
    return refusal(
        FOREIGN.products, parsed_arguments(FOREIGN, orjson.dumps(arguments).decode()), INSIDE
    )


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_another_teams_product_is_refused_in_every_form(form: Form) -> None:
    assert "outside this channel's products (checkout, web)" in (refused(form("payments")) or "")


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_an_own_product_passes_in_every_form(form: Form) -> None:
    assert refused(form("checkout")) is None


@pytest.mark.parametrize("arguments", WILDCARDS, ids=str)
def test_a_wildcard_or_a_negation_is_refused(arguments: JsonValue) -> None:
    assert refused(arguments) is not None


@pytest.mark.parametrize("arguments", HARMLESS, ids=lambda each: orjson.dumps(str(each)).decode())
def test_arguments_that_name_no_product_pass(arguments: JsonValue) -> None:
    assert refused(arguments) is None


@given(
    form=st.sampled_from(list(FORMS.values())),
    wrap=st.lists(st.sampled_from(["list", "object", "text key"]), max_size=40),
)
def test_depth_hides_nothing(form: Form, wrap: list[str]) -> None:
    value = form("payments")
    for each in wrap:
        value = [None, value] if each == "list" else {f"{each}\u2028": value, "limit": 2**64}
    assert "payments" in set(named_products({"nested": value}))


def test_a_thousand_brackets_are_read() -> None:
    value: JsonValue = {"service": "payments"}
    for _ in range(1500):
        value = [value]
    assert list(named_products(value)) == ["payments"]


def test_a_wildcard_beside_an_own_product_is_refused() -> None:
    class Named(ToolInput):
        service: str = ""
        apps: list[str] = []  # noqa: RUF012 - pydantic copies it

    named = contract(input=Named, products=usual_scope(Named.model_fields))
    arguments = parsed_arguments(named, '{"service": "checkout", "apps": ["*"]}')

    assert refusal(named.products, arguments, INSIDE) is not None
