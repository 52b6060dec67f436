"""An opened result: its picture in text, what was asked, when, and its JSON behind a button."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.demo.workspace.block_rules import check_view
from bot.slack.views.sources import RAW_ACTION, opened_view
from tests.charted_results import COMPARE, GET, compared, evidence

ASKED: dict[str, Any] = {"product": "checkout", "metric_name": "p99", "time_range": "last 30m"}
LINKS = {"metrics": "https://grafana.internal/d?p={product}&from={from_ms}&to={to_ms}"}


def opened(tool: str, fields: Any, links: dict[str, str] | None = None) -> Any:
    """The modal, which Slack would take."""
    view = opened_view(evidence(tool, fields), ASKED, links or {}, "turn:T:C:1|1", "{}")
    check_view(view, "modal")
    return view


def test_a_comparison_opens_as_a_text_chart_with_its_query_and_range() -> None:
    shown = json.dumps(opened(COMPARE, compared()), ensure_ascii=False)

    assert "11:33     1.7  ███████████ ◂ onset" in shown
    assert "usual (median): 0.2" in shown
    assert "metric_name: p99" in shown
    assert "From 21 Nov 2026 11:30:00 to 21 Nov 2026 12:00:00 UTC" in shown
    assert "baseline_median" not in shown


def test_the_buttons_lead_to_the_backend_and_to_the_json() -> None:
    buttons = opened(COMPARE, compared(), LINKS)["blocks"][-1]["elements"]

    assert [each.get("url", each["action_id"]) for each in buttons] == [
        "https://grafana.internal/d?p=checkout&from=1795260600000&to=1795262400000",
        RAW_ACTION,
    ]


def test_rows_open_as_a_table_with_aligned_columns() -> None:
    pods = {"columns": ["Name", "Restarts"], "rows": [["checkout-1", 3], ["db", 11]]}
    shown = json.dumps(opened("core__kubectl_get", pods))

    assert "Name        Restarts\\ncheckout-1  3\\ndb          11" in shown


def test_a_result_without_a_picture_opens_as_json() -> None:
    shown = json.dumps(opened("core__get_application", {"name": "checkout"}))

    assert '\\"name\\": \\"checkout\\"' in shown
    assert RAW_ACTION not in shown


@given(
    st.sampled_from([GET, COMPARE, "core__kubectl_get", "core__error_patterns"]),
    st.text(max_size=50),
    st.integers(0, 300),
)
def test_any_opened_result_is_accepted_by_slack_and_inert(
    tool: str, text: str, number: int
) -> None:
    fields = compared([1.5] * number, unit=text) | {
        "columns": [text] * 3,
        "rows": [[text, number, None]] * number,
        "changes": [{"example": text, "product": text}] * number,
    }
    shown = opened(tool, fields)

    assert "mrkdwn" not in json.dumps(shown)
