"""A channel's products bound what its tools read: every tool, under every name of an argument."""

from dataclasses import replace
from typing import Any

import orjson
import pytest
from pydantic import JsonValue
from pydantic.fields import FieldInfo

from tests.fakes.capabilities import call_context
from tests.fakes.tools import FakeTool, bench, contract
from tools.admission import parsed_arguments
from tools.attached import AttachedFile
from tools.catalog import CatalogInvalid, ToolCatalog
from tools.contract import ToolContract, ToolInput
from tools.core.all import core_tools
from tools.cursor import CursorSigner
from tools.errors import ToolErrorCode
from tools.policy import ToolPolicy
from tools.products import (
    BY_PRODUCT,
    CANNOT_BE_TOLD,
    OF_NO_PRODUCT,
    ProductScope,
    Reading,
    refusal,
    usual_scope,
)

CORE = {tool.contract.id: tool.contract for tool in core_tools(CursorSigner(bytes(32)))}
INSIDE: dict[str, Any] = {"products": ("checkout", "web"), "reading": Reading.PRODUCTS}
NAMED = [(c, name) for c in CORE.values() for name in c.products.arguments]
# What a call also needs, by argument.
NEEDED: dict[str, JsonValue] = {
    "time_range": "last 30m", "metric": "up", "metric_name": "up", "query": "timeout",
    "operation": "restart", "action": "restart", "rationale": "because", "params": {},
    "blast_radius": "one service", "reversible": True,
}  # fmt: skip


def asked(of: ToolContract, **named: JsonValue) -> str:
    required = {n: NEEDED[n] for n, f in of.input.model_fields.items() if _is_needed(n, f, named)}
    return orjson.dumps({**required, **named}).decode()


def _is_needed(name: str, field: FieldInfo, named: dict[str, JsonValue]) -> bool:
    return field.is_required() and name not in named


@pytest.mark.parametrize(("of", "name"), NAMED, ids=lambda each: getattr(each, "id", each))
def test_a_call_for_another_product_is_outside_the_scope(of: ToolContract, name: str) -> None:
    bound = call_context(**INSIDE)
    theirs = parsed_arguments(of, asked(of, **{name: "payments"}))
    own = parsed_arguments(of, asked(of, **{name: "web"}))
    said = refusal(of.products, theirs, bound) or ""
    assert said.startswith(f"{name}: outside this channel's products (checkout, web)")
    assert refusal(of.products, own, bound) is None
    assert refusal(of.products, theirs, replace(bound, reading=Reading.ALL)) is None


@pytest.mark.parametrize("of", CORE.values(), ids=CORE)
def test_every_argument_named_like_a_product_is_declared(of: ToolContract) -> None:
    assert {*usual_scope(of.input.model_fields).arguments} <= {*of.products.arguments}


@pytest.mark.parametrize("of", CORE.values(), ids=CORE)
def test_without_a_common_product_no_product_tool_is_offered(of: ToolContract) -> None:
    policy = ToolPolicy(toolsets={"investigate": ("core__*",)})
    catalog = ToolCatalog([FakeTool(of)], policy)
    strict = call_context(products=(), reading=Reading.STRICT, files=(AttachedFile("F1"),))
    offered = catalog.visible(strict)
    assert bool(offered) is of.products.is_free


def test_a_tool_declares_its_products() -> None:
    with pytest.raises(TypeError, match="products"):
        ToolContract(**{f: getattr(contract(), f) for f in ("id", "description", "input", "output",
                     "effect", "redaction", "timeouts", "capabilities")})  # fmt: skip


def test_a_declared_product_must_be_an_argument() -> None:
    with pytest.raises(CatalogInvalid, match="no such argument: product"):
        ToolCatalog([FakeTool(contract(products=BY_PRODUCT))], ToolPolicy())


class ManyInput(ToolInput):
    service: str = ""
    apps: list[str] = []  # noqa: RUF012 - pydantic copies it


MANY = contract(input=ManyInput, products=usual_scope(ManyInput.model_fields))
OUTSIDE: list[dict[str, JsonValue]] = [
    {},
    {"service": ""},
    {"service": "*"},
    {"service": "payments"},
    {"service": "Checkout"},
    {"service": "checkout "},
    {"service": "checkout,payments"},
    {"service": "checko*"},
    {"apps": ["checkout", "payments"]},
    {"service": "checkout", "apps": ["payments"]},
    {"apps": ["*"]},
    {"apps": []},
]


@pytest.mark.parametrize("named", OUTSIDE, ids=str)
async def test_the_runner_denies_a_product_outside_the_scope_with_the_reason(
    named: dict[str, JsonValue],
) -> None:
    tool = FakeTool(MANY)
    here = bench([tool])
    outcome = await here.run(orjson.dumps(named).decode(), **INSIDE)
    assert outcome.record.error_code is ToolErrorCode.POLICY_DENIED
    assert "this channel's products (checkout, web)" in outcome.content
    assert tool.calls == []


@pytest.mark.parametrize("named", [{"service": "web"}, {"apps": ["web", "checkout"]}], ids=str)
async def test_the_runner_permits_a_product_inside_the_scope(named: dict[str, JsonValue]) -> None:
    tool = FakeTool(MANY, answer=lambda _: {"text": "x"})
    await bench([tool]).run(orjson.dumps(named).decode(), **INSIDE)
    assert len(tool.calls) == 1


SCOPES = [BY_PRODUCT, OF_NO_PRODUCT, CANNOT_BE_TOLD, ProductScope(("text",), narrows=True)]


@pytest.mark.parametrize("reading", Reading)
@pytest.mark.parametrize("scope", SCOPES[1:], ids=str)
async def test_the_catalog_and_the_runner_agree(scope: ProductScope, reading: Reading) -> None:
    here = bench([FakeTool(contract(products=scope))])
    bound = call_context(products=("hi",), reading=reading)
    shown = bool(here.catalog.visible(bound))
    outcome = await here.run(products=("hi",), reading=reading)
    assert shown is outcome.record.ok
    assert shown is not (scope is CANNOT_BE_TOLD and reading is Reading.STRICT)
