"""Admin info and the catalogue of actions as results."""

from collections.abc import Mapping

import orjson
import pytest
from pydantic import JsonValue

from adapters.control_plane.port import Endpoint
from bot.actions.catalog import ActionCatalog, ActionRule, OfferedOperations
from tests.fakes.capabilities import fake_capabilities
from tests.fakes.tools import bench
from tools.capabilities import CallContext
from tools.core.get_admin_info import GetAdminInfo
from tools.core.operations import DiscoverOperations, GetOperationParameters

SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"version": {"type": "string"}},
    "required": [],
    "additionalProperties": False,
}
ROLLBACK = ActionRule(
    name="rollback-deploy",
    description="Roll back",
    endpoint=Endpoint(url="http://plane/{product}", credential_id="", status_url=""),
    products=("checkout",),
    params_schema=SCHEMA,
    reversible=True,
    blast_radius="one service",
)


class FakeAdmin:
    def __init__(self, envelope: Mapping[str, JsonValue]) -> None:
        self.envelope = dict(envelope)

    async def info(self, product: str, call: CallContext) -> dict[str, JsonValue]:
        return self.envelope


async def ask(
    tool: str, envelope: Mapping[str, JsonValue] = {}, **arguments: str
) -> dict[str, object]:
    caps = fake_capabilities(
        admin=FakeAdmin(envelope), operations=OfferedOperations(ActionCatalog([ROLLBACK]))
    )
    b = bench([GetAdminInfo(), DiscoverOperations(), GetOperationParameters()], caps=caps)
    outcome = await b.run(orjson.dumps(arguments).decode(), f"core__{tool}")
    found: dict[str, object] = orjson.loads(outcome.content)
    return found


async def test_only_the_envelopes_fields_are_shown() -> None:
    envelope: dict[str, JsonValue] = {
        "product": "other",
        "version": "v2",
        "uptime_s": 8741,
        "feature_flags": {"batch": True},
        "database_url": "postgres://CANARY",
    }
    assert await ask("get_admin_info", envelope, product="checkout") == {
        "product": "checkout",
        "version": "v2",
        "uptime_s": 8741.0,
        "feature_flags": {"batch": True},
    }


@pytest.mark.parametrize("envelope", [{"version": 5}, {"uptime_s": "long"}, {"build": []}])
async def test_another_envelope_is_a_failure(envelope: dict[str, JsonValue]) -> None:
    assert (await ask("get_admin_info", envelope, product="checkout"))["error"] == "upstream"


async def test_operations_are_those_declared_for_the_product() -> None:
    assert await ask("discover_operations", product="checkout") == {
        "operations": [
            {
                "name": "rollback-deploy",
                "description": "Roll back",
                "reversible": True,
                "blast_radius": "one service",
                "parameters": ["version"],
            }
        ]
    }
    assert await ask("discover_operations", product="payments") == {"operations": []}


async def test_parameters_are_the_schema_that_a_proposal_must_fit() -> None:
    found = await ask("get_operation_parameters", product="checkout", operation="rollback-deploy")
    assert found["params_schema"] == SCHEMA


@pytest.mark.parametrize(
    ("product", "words"), [("checkout", "there are: rollback-deploy"), ("web", "there are: none")]
)
async def test_an_unknown_operation_lists_the_known_ones(product: str, words: str) -> None:
    found = await ask("get_operation_parameters", product=product, operation="drop-database")
    assert words in str(found["message"])
