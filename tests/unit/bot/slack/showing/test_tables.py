"""A table's block: within Slack's limits and the message's room, whatever is in its cells."""

from hypothesis import given
from hypothesis import strategies as st

from bot.demo.workspace.block_rules import check_blocks
from bot.domain.tabled import Table
from bot.slack.showing.render import render
from bot.slack.showing.tables import table_block
from bot.slack.text.blocks import text_chars
from bot.slack.text.limits import MESSAGE_CHARS
from tests.charted_results import answered, result
from tests.golden.slack_views import view

ROWS = tuple((f"pod-{n}", float(n)) for n in range(100))


def test_it_is_cut_to_the_room_there_is_and_says_so() -> None:
    block = table_block(Table(2, "core__kubectl_get", ("pod", "restarts"), ROWS), 200)

    assert block is not None
    check_blocks([block], "message")
    assert text_chars([block]) <= 200
    assert "of 100 rows" in str(block["caption"])


def test_without_room_for_three_rows_there_is_none() -> None:
    assert table_block(Table(2, "core__kubectl_get", ("pod", "restarts"), ROWS), 40) is None


@given(
    st.lists(
        st.tuples(st.text(max_size=200), st.floats(allow_nan=False, allow_infinity=False)),
        min_size=1,
        max_size=100,
    )
)
def test_whatever_the_cells_hold_slack_takes_it(rows: list[tuple[str, float]]) -> None:
    block = table_block(Table(1, "core__kubectl_get", ("a", "b"), tuple(rows)), 3_000)

    check_blocks([block] if block else [], "message")


def test_a_hostile_cell_is_text_and_nothing_else() -> None:
    rows = (("<!channel> https://evil.example <@U1>", 1.0),) * 3
    block = str(table_block(Table(1, "core__kubectl_get", ("a", "b"), rows), 3_000))

    assert "evil.example" not in block
    assert "<" not in block
    assert "@channel" not in block


def test_beside_a_full_text_it_leaves_the_message_whole() -> None:
    lines = [f"{n} pods are {'x' * 60} [E1]" for n in range(42)]
    fields = {"columns": ["Name", "Age"], "rows": [["p" * 80, "9m"]] * 100}
    final = answered(result("core__kubectl_get", fields), says="\n".join(lines))  # type: ignore[arg-type]

    (part,) = render(view([final]))

    check_blocks(part.blocks, "message")
    assert any(block["type"] == "data_table" for block in part.blocks)
    assert text_chars(part.blocks) <= MESSAGE_CHARS
