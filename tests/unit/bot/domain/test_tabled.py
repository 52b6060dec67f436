"""Tables out of results: the rows that are there, of what a standing statement cites."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from bot.domain.tabled import TOLD, table_of
from tests.charted_results import evidence
from tools.core.all import core_tools
from tools.cursor import CursorSigner

TOOLS = core_tools(CursorSigner(b"0123456789abcdef"))
PATTERNS = "core__error_patterns"
DEPLOYS = "core__get_recent_deploys"
PODS = "core__kubectl_get"


def patterns(number: int) -> dict[str, JsonValue]:
    rows: list[JsonValue] = [
        {
            "example": f"timeout {n}",
            "product": "checkout",
            "after": n,
            "since": "2026-11-21T11:30:00Z",
        }
        for n in range(number)
    ]
    return {"changes": rows}


def test_listed_items_are_rows_without_empty_columns() -> None:
    table = table_of(evidence(PATTERNS, patterns(2)))

    assert table is not None
    assert table.heads == ("product", "example", "after", "since")
    assert table.rows == (
        ("checkout", "timeout 0", 0.0, "11-21 11:30"),
        ("checkout", "timeout 1", 1.0, "11-21 11:30"),
    )


def test_pods_are_listed_like_in_kubectl() -> None:
    fields: dict[str, JsonValue] = {
        "columns": ["Name", "Restarts"],
        "rows": [["checkout-1", 3], ["odd"], ["checkout-2", None]],
    }

    table = table_of(evidence(PODS, fields))

    assert table is not None
    assert table.rows == (("checkout-1", 3.0), ("checkout-2", ""))


def test_a_structured_line_shows_its_message() -> None:
    change: JsonValue = {"example": '{"msg": "request failed", "order": 7}', "after": 3}
    table = table_of(evidence(PATTERNS, {"changes": [change]}))

    assert table is not None
    assert table.rows[0][0] == "request failed"


@pytest.mark.parametrize("tool", sorted(TOLD))
def test_tabled_fields_exist_in_the_tools_outputs(tool: str) -> None:
    (output,) = [each.contract.output for each in TOOLS if each.contract.id == tool]
    key, fields = TOLD[tool]

    schema = output.model_json_schema()
    row = schema["properties"][key]["items"]["$ref"].rpartition("/")[2]
    assert set(fields) <= set(schema["$defs"][row]["properties"])


@given(
    st.sampled_from([PATTERNS, DEPLOYS, PODS]),
    st.dictionaries(
        st.sampled_from(["deploys", "changes", "columns", "rows"]),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(max_size=6),
            lambda inner: (
                st.lists(inner, max_size=4)
                | st.dictionaries(st.sampled_from(["since", "ts", "example"]), inner, max_size=3)
            ),
            max_leaves=10,
        ),
        max_size=3,
    ),
)
def test_every_row_has_a_cell_for_each_head(tool: str, fields: dict[str, JsonValue]) -> None:
    table = table_of(evidence(tool, fields))

    assert table is None or {len(row) for row in table.rows} == {len(table.heads)}
