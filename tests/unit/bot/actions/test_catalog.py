"""Valid declarations, and the model's errors for anything else."""

from dataclasses import replace

import pytest
from pydantic import JsonValue

from adapters.control_plane.port import Endpoint, ExecutorKind, Reads
from bot.actions.catalog import ActionCatalog, ActionRule, CatalogError, RateLimit
from bot.actions.params import ParamsSchema
from tests.fixtures_actions import ROLLBACK, SCALE
from tools.errors import InvalidArguments
from tools.json_schema import MAX_PROBLEMS

STRICT = {
    "type": "object",
    "properties": {
        "version": {"type": "string", "pattern": "^v[0-9]+$"},
        "speed": {"enum": ["slow", "fast"]},
        "hosts": {"type": "integer", "description": "at once"},
    },
    "required": ["version"],
}


def declared(**changes: object) -> ActionRule:
    return replace(ROLLBACK, **changes)  # type: ignore[arg-type]


def read(**where: str) -> Endpoint:
    """An endpoint whose target can be read."""
    return Endpoint("https://c.example/", reads=Reads(**where))  # type: ignore[arg-type]


GITHUB, REHEARSAL = ExecutorKind.GITHUB, ExecutorKind.REHEARSAL
COUNTED = read(count_url="https://c.example/{product}/{params.a}")


@pytest.mark.parametrize(
    ("rule", "key"),
    [
        (declared(name="two words"), "name"),
        (declared(name=""), "name"),
        (declared(products=()), "products"),
        (declared(products=("",)), "products"),
        (declared(blast_radius="the world"), "blast_radius"),
        (declared(approvals=0), "approvals"),
        (declared(approvals=11), "approvals"),
        (declared(endpoint=Endpoint("https://g.example/", kind=GITHUB)), "endpoint.ref"),
        (declared(endpoint=Endpoint("", kind=GITHUB, ref="main")), "endpoint.url"),
        (declared(endpoint=Endpoint("", kind=REHEARSAL), dry_run=True), "dry_run"),
        (declared(endpoint=Endpoint("", kind=REHEARSAL, status_url="https://c/")), "status_url"),
        (declared(max_objects=3), "max_objects"),
        (declared(count_param="hosts"), "max_objects"),
        (declared(max_objects=3, count_param="hosts", endpoint=COUNTED), "count_param"),
        (declared(endpoint=COUNTED), "max_objects"),
        (declared(endpoint=read(count_url="nope"), max_objects=1), "count_url"),
        (declared(endpoint=read(fingerprint_url="https://{params.a}.x/")), "fingerprint_url"),
        (declared(rate_limit="often"), "rate_limit"),
        (declared(rate_limit="0/1h"), "rate_limit"),
        (declared(params_schema={"type": "string"}), "params_schema"),
        (declared(params_schema={"properties": {"a": {"type": "nothing"}}}), "params_schema"),
        (declared(params_schema={"$ref": "https://elsewhere.example/s"}), "params_schema"),
        (declared(endpoint=Endpoint("https://{product}.example/")), "endpoint.url"),
        (declared(endpoint=Endpoint("")), "endpoint.url"),
        (declared(endpoint=Endpoint("https://c.example/", method="PUT")), "endpoint.method"),
        (declared(endpoint=Endpoint("https://c.example/", status_url="nope")), "status_url"),
    ],
)
def test_an_unworkable_declaration_is_refused_at_start(rule: ActionRule, key: str) -> None:
    with pytest.raises(CatalogError) as caught:
        ActionCatalog([rule])

    assert (caught.value.action, caught.value.key) == (rule.name, key)


def test_a_name_declared_twice_is_refused() -> None:
    with pytest.raises(CatalogError, match="twice"):
        ActionCatalog([ROLLBACK, ROLLBACK])


@pytest.mark.parametrize(
    ("text", "limit"),
    [("3/1h", RateLimit(3, 3600)), ("1/90s", RateLimit(1, 90)), ("2/7d", RateLimit(2, 604_800))],
)
def test_a_rate_limit_is_a_count_in_a_window(text: str, limit: RateLimit) -> None:
    assert RateLimit.parse(text) == limit


def test_globs_decide_which_actions_are_offered() -> None:
    catalog = ActionCatalog([ROLLBACK, SCALE])

    assert [a.rule.name for a in catalog.offered("shop-web")] == ["rollback-deploy", "scale"]
    assert [a.rule.name for a in catalog.offered("checkout")] == ["rollback-deploy"]


@pytest.mark.parametrize("action", ["restart", "scale"])
def test_an_unknown_action_lists_the_known_ones(action: str) -> None:
    catalog = ActionCatalog([declared(params_schema=STRICT), SCALE])

    with pytest.raises(InvalidArguments) as caught:
        catalog.find(action, "checkout")

    assert "What exists for checkout: rollback-deploy (version: " in caught.value.message
    assert "hosts: integer (at once), optional" in caught.value.message


def test_a_product_without_actions_is_refused() -> None:
    with pytest.raises(InvalidArguments, match="No action may be proposed for checkout"):
        ActionCatalog([SCALE]).find("restart", "checkout")


@pytest.mark.parametrize("product", ["", "*", "a b", "a\nb", "../x", "x" * 65, "é"])
def test_a_product_is_one_plain_name(product: str) -> None:
    with pytest.raises(InvalidArguments, match="product must be"):
        ActionCatalog([ROLLBACK]).find("rollback-deploy", product)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({}, "required: version"),
        ({"version": 3}, "version: must be of type string"),
        ({"version": "canary"}, "version: must satisfy pattern"),
        ({"version": "v1", "speed": "canary"}, "speed: must satisfy enum"),
        ({"version": "v1", "force": True}, "contains a name that is not declared"),
    ],
)
def test_invalid_params_are_named_without_their_values(
    params: dict[str, object], said: str
) -> None:
    catalog = ActionCatalog([declared(params_schema=STRICT)])
    action = catalog.find("rollback-deploy", "checkout")

    with pytest.raises(InvalidArguments) as caught:
        catalog.check_params(action, params)  # type: ignore[arg-type]

    assert said in caught.value.message
    assert "canary" not in caught.value.message
    assert "It takes: version: " in caught.value.message


def test_undeclared_params_are_refused_unless_the_schema_allows_them() -> None:
    closed = ParamsSchema({"properties": {"a": {}}})
    opened = ParamsSchema({"properties": {"a": {}}, "additionalProperties": True})

    assert closed.problems({"b": 1})
    assert not opened.problems({"b": 1})


def test_the_list_of_problems_is_limited() -> None:
    many: dict[str, JsonValue] = {f"p{n}": {"type": "string"} for n in range(50)}

    found = ParamsSchema({"properties": many}).problems(dict.fromkeys(many, 1))

    assert len(found) == MAX_PROBLEMS


def test_a_hostile_value_is_matched_in_linear_time() -> None:
    schema = ParamsSchema({"properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}})

    assert schema.problems({"a": "a" * 50_000 + "!"})
