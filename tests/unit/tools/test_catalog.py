"""Declarations that cannot be accepted, who sees which tools, and their schema."""

from enum import StrEnum
from itertools import product
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, JsonValue, create_model

from tests.fakes.capabilities import call_context, fake_capabilities
from tests.fakes.tools import ALL, FakeTool, contract
from tools.catalog import Allowlist, AllowlistInvalid, CatalogInvalid, ToolCatalog
from tools.contract import PROPOSE_TOOL_ID, Effect, Timeouts, ToolInput
from tools.core.all import core_tools
from tools.cursor import CursorSigner
from tools.policy import ToolPolicy
from tools.products import Reading
from tools.schema import SchemaNotPortable, input_schema

CORE = core_tools(CursorSigner(b"0123456789abcdef"))


def names(catalog: ToolCatalog, **context: object) -> list[str]:
    return [one.name for one in catalog.visible(call_context(**context))]


@pytest.mark.parametrize(
    "changes",
    [
        {"redaction": frozenset()},
        {"redaction": frozenset({""})},
        {"redaction": frozenset({"a..b"})},
        {"redaction": frozenset({"lines[.message"})},
        {"effect": Effect.STATE_CHANGE},
        {"effect": Effect.EXTERNAL_SIDE_EFFECT},
        {"capabilities": frozenset({"shell"})},
        {"id": "echo"},
        {"id": "core__"},
        {"id": "core__Echo"},
        {"id": "core__" + "x" * 60},
        {"id": "core__a-b"},
        {"id": "plugin__x", "opaque": frozenset({"text"})},
        {"timeouts": Timeouts(10, 5)},
        {"timeouts": Timeouts(0, 5)},
        {"input": create_model("Loose", a=(int, 1))},
        {"input": create_model("Conn", __base__=ToolInput, connection_id=(str, ""))},
        {"input": create_model("Conn", __base__=ToolInput, connectionId=(str, ""))},
    ],
)
def test_a_bad_declaration_is_an_error_at_construction(changes: dict[str, Any]) -> None:
    with pytest.raises(CatalogInvalid):
        ToolCatalog([FakeTool(contract(**changes))], ALL)


def test_two_tools_of_one_name_are_an_error() -> None:
    with pytest.raises(CatalogInvalid, match="two tools"):
        ToolCatalog([FakeTool(), FakeTool()], ALL)


def test_only_the_proposing_tool_may_be_more_than_read_only() -> None:
    proposing = FakeTool(contract(id=PROPOSE_TOOL_ID, effect=Effect.STATE_CHANGE))
    assert names(ToolCatalog([proposing], ALL)) == [PROPOSE_TOOL_ID]


@pytest.mark.parametrize("effect", [Effect.STATE_CHANGE, Effect.EXTERNAL_SIDE_EFFECT])
def test_a_policy_that_lets_tools_act_is_refused(effect: Effect) -> None:
    with pytest.raises(ValueError, match="only read"):
        ToolPolicy(effects=frozenset({Effect.READ_ONLY, effect}))


def test_nothing_is_visible_by_default() -> None:
    assert names(ToolCatalog(CORE, ToolPolicy())) == []


def test_a_purpose_sees_its_own_toolset() -> None:
    policy = ToolPolicy({"investigate": ("core__get_*",), "recommend": (PROPOSE_TOOL_ID,)})
    catalog = ToolCatalog(CORE, policy)
    assert names(catalog, purpose="recommend") == [PROPOSE_TOOL_ID]
    declared = [each.contract for each in CORE if each.contract.id.startswith("core__get_")]
    reading = sorted(each.id for each in declared if not each.requires_connection)
    assert "core__get_logs" in reading
    assert names(catalog, purpose="investigate") == reading


def test_a_tool_that_needs_a_connection_is_visible_only_with_one() -> None:
    policy = ToolPolicy(ALL.toolsets, granted_connections=frozenset({"platform:a"}))
    catalog = ToolCatalog([FakeTool(contract(requires_connection=True))], policy)
    assert names(catalog, connection_ids=frozenset({"platform:a"})) == ["core__echo"]
    assert names(catalog, connection_ids=frozenset({"platform:b"})) == []
    assert names(catalog) == []


def test_a_tool_bound_to_session_names_is_visible_only_there() -> None:
    policy = ToolPolicy(ALL.toolsets, sessions={"core__echo": ("incident-*",)})
    catalog = ToolCatalog([FakeTool()], policy)
    assert names(catalog, session_name="incident-db") == ["core__echo"]
    assert names(catalog, session_name="random") == []
    assert names(catalog, session_name="Incident-db") == []


@pytest.mark.parametrize(
    ("glob", "seen"), [("*", []), ("mcp__*", []), ("mcp__gh__search", ["mcp__gh__search"])]
)
def test_an_mcp_tool_is_allowed_only_by_its_exact_name(glob: str, seen: list[str]) -> None:
    catalog = ToolCatalog(
        [FakeTool(contract(id="mcp__gh__search"))], ToolPolicy({"investigate": (glob,)})
    )
    assert names(catalog) == seen


def test_tools_without_their_capability_are_not_offered() -> None:
    catalog = ToolCatalog(CORE, ALL, fake_capabilities(logs=None, proposals=None))
    assert "core__get_logs" not in names(catalog)
    assert "core__get_metrics" in names(catalog)


@pytest.mark.parametrize("tool", CORE, ids=lambda tool: tool.contract.id)
def test_every_built_in_allowlist_names_fields_that_exist(tool: Any) -> None:
    fields = set(tool.contract.output.model_fields)
    tops = {path.split(".")[0].split("[")[0] for path in tool.contract.redaction}
    assert tops == fields


@pytest.mark.parametrize("tool", CORE, ids=lambda tool: tool.contract.id)
def test_every_built_in_schema_is_portable_and_brief(tool: Any) -> None:
    text = repr(input_schema(tool.contract.input))
    assert not any(word in text for word in ("$ref", "anyOf", "oneOf", "allOf", "null", "title"))
    assert "'additionalProperties': False" in text
    assert len(tool.contract.description) <= 300


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    deep: int | None = None


class Wide(ToolInput):
    colour: Colour
    maybe: str | None = Field(None, description="perhaps")
    inner: Inner | None = None
    many: list[Inner] = Field(default_factory=list)


def test_references_and_nulls_become_plain_types() -> None:
    inner = {
        "type": "object",
        "properties": {"deep": {"type": "integer"}},
        "required": [],
        "additionalProperties": False,
    }
    assert input_schema(Wide) == {
        "type": "object",
        "properties": {
            "colour": {"type": "string", "enum": ["red", "blue"]},
            "maybe": {"type": "string", "description": "perhaps"},
            "inner": inner,
            "many": {"type": "array", "items": inner},
        },
        "required": ["colour"],
        "additionalProperties": False,
    }


class Tree(ToolInput):
    children: list["Tree"] = Field(default_factory=list)


@pytest.mark.parametrize(
    "model",
    [
        Tree,
        create_model("Either", __base__=ToolInput, a=(int | str, 1)),
        create_model("Dotted", __base__=ToolInput, a=(str, Field("", alias="a.b"))),
    ],
)
def test_a_schema_that_some_provider_refuses_is_refused(model: type[BaseModel]) -> None:
    with pytest.raises(SchemaNotPortable):
        input_schema(model)


def test_the_allowlist_keeps_named_fields_and_drops_others() -> None:
    allow = Allowlist({"a", "rows[].x", "rows[].tags", "grid[][].v", "o.p"})
    value: dict[str, JsonValue] = {
        "a": {"any": 1},
        "b": 1,
        "rows": [{"x": 1, "y": 2, "tags": {"k": "v"}}, "loose", None],
        "grid": [[{"v": 1, "w": 2}]],
        "o": {"p": 1, "q": 2},
    }
    assert allow.apply(value) == {
        "a": {"any": 1},
        "rows": [{"x": 1, "tags": {"k": "v"}}],
        "grid": [[{"v": 1}]],
        "o": {"p": 1},
    }


def test_the_allowlist_follows_a_tree() -> None:
    allow = Allowlist({"root.id", "root.kids[]..."})
    tree: dict[str, JsonValue] = {
        "root": {"id": 1, "s": 0, "kids": [{"id": 2, "s": 0, "kids": [{"id": 3, "s": 0}]}]}
    }
    assert allow.apply(tree) == {"root": {"id": 1, "kids": [{"id": 2, "kids": [{"id": 3}]}]}}


def test_a_value_where_the_allowlist_expects_an_object_is_dropped() -> None:
    assert Allowlist({"o.p"}).apply({"o": "secret"}) == {}
    assert Allowlist({"rows[].x"}).apply({"rows": ["secret"]}) == {"rows": []}
    assert Allowlist({"o.p"}).apply({"o": ["secret"]}) == {"o": []}


@pytest.mark.parametrize("path", ["a[", "a]b", "[]", "a.", ".a", "kids...", "a[][]..."])
def test_a_malformed_path_is_refused(path: str) -> None:
    with pytest.raises(AllowlistInvalid):
        Allowlist({path})


def test_a_cached_catalog_entry_is_for_its_own_context_only() -> None:
    """Each part of a question that decides is another's: asked again, and asked of a new catalog."""
    policy = ToolPolicy(
        toolsets={"investigate": ("core__*",), "recommend": ("core__get_*",)},
        sessions={"core__get_logs": ("incident-*",)},
        channels=(("quiet", ("core__get_metrics",)),),
        purposes=frozenset({"investigate", "recommend"}),
        roles={"sre": ("core__get_logs",), "*": ("core__get_metrics", "core__kubectl_*")},
    )
    bound = fake_capabilities()
    catalog = ToolCatalog(CORE, policy, bound)
    parts: list[tuple[str, list[object]]] = [
        ("purpose", ["investigate", "recommend", "nothing"]),
        ("channel", ["C1", "quiet", ""]),
        ("session_name", ["incident-checkout", "other"]),
        ("roles", [frozenset(), frozenset({"sre"})]),
        ("connection_ids", [frozenset(), frozenset({"c1"})]),
        ("products", [("checkout",), ()]),
        ("reading", list(Reading)),
    ]
    askings = [
        call_context(**dict(zip([name for name, _ in parts], chosen, strict=True)))
        for chosen in product(*(values for _, values in parts))
    ]
    fresh = ToolCatalog(CORE, policy, bound)
    for asking in (*askings, *askings):
        assert catalog.visible(asking) == fresh._visible(asking)

    assert catalog.visible(askings[0]) is catalog.visible(askings[0])
