"""An alert's row after reports in any order: the latest state wins."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from bot.domain.alerts import Alert, AlertRule, AlertState, FiledAlert
from bot.domain.ids import ChannelId
from bot.store.alert_rows import change

AT = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
RULE = AlertRule("a", ChannelId("C1"))
states = st.sampled_from(list(AlertState))


def filed_alert(minute: int, state: AlertState) -> FiledAlert:
    at = AT + timedelta(minutes=minute)
    return FiledAlert(Alert("s", "g", "a", state, "t", {}, at), RULE, "", "k", "g")


def row_after(*reports: tuple[int, AlertState]) -> Any:
    row: Any = None
    for minute, state in reports:
        values = change(row, filed_alert(minute, state))
        row = row if values is None else SimpleNamespace(**values)
    return row


@example(later=[(1, AlertState.RESOLVED), (3, AlertState.RESOLVED), (2, AlertState.FIRING)])
@given(
    later=st.dictionaries(st.integers(1, 9), states, max_size=6).flatmap(
        lambda found: st.permutations(sorted(found.items()))
    )
)
def test_the_latest_report_after_its_start_wins_in_any_order(
    later: list[tuple[int, AlertState]],
) -> None:
    row = row_after((0, AlertState.FIRING), *later)
    _, last = max([(0, AlertState.FIRING), *later])
    assert row.state == last


@given(reports=st.lists(st.tuples(st.integers(0, 9), states), min_size=1, max_size=8))
def test_a_repeated_report_changes_only_the_count(
    reports: list[tuple[int, AlertState]],
) -> None:
    once, twice = row_after(*reports), row_after(*reports, reports[-1])
    assert (once.state, once.fires, once.changed_at) == (twice.state, twice.fires, twice.changed_at)
