"""Where a result is found in people's own tools: the operators' address, filled in and never led away."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from bot.domain.asked import link_of, query_of, window_of
from tests.charted_results import GET, evidence

TEMPLATE = {
    "metrics": "https://grafana.internal/d?p={product}&q={query}&from={from_ms}&to={to_ms}",
    "traces": "https://jaeger.internal/trace/{trace_id}",
}
FOUND = evidence(GET, {"range": "2026-11-21T11:30:00Z/2026-11-21T12:00:00Z"})
ASKED: dict[str, JsonValue] = {"product": "checkout", "metric_name": "p99", "labels": {}}


def test_a_result_links_to_its_query_in_its_window() -> None:
    assert link_of(FOUND, ASKED, TEMPLATE) == (
        "https://grafana.internal/d?p=checkout&q=p99&from=1795260600000&to=1795262400000"
    )


def test_a_trace_links_by_its_id() -> None:
    found = evidence("core__get_traces", "{}")

    assert (
        link_of(found, {"trace_id": "4bf92f"}, TEMPLATE) == "https://jaeger.internal/trace/4bf92f"
    )


@pytest.mark.parametrize(
    ("tool", "asked"),
    [
        (GET, {}),
        (GET, {"product": "*", "metric_name": "p99"}),
        ("core__get_traces", ASKED),
        ("core__get_logs", ASKED),
        ("mcp__grafana__query", ASKED),
    ],
)
def test_without_a_template_or_with_a_field_missing_there_is_no_link(
    tool: str, asked: dict[str, JsonValue]
) -> None:
    assert link_of(evidence(tool, FOUND.content), asked, TEMPLATE) == ""


@given(st.text())
def test_no_argument_leads_to_another_host_or_adds_a_field(text: str) -> None:
    link = link_of(FOUND, {"product": text, "query": text}, TEMPLATE)

    assert link == "" or link.startswith("https://grafana.internal/d?p=")
    assert link.count("&") in (0, 3)
    assert link.isascii()
    assert not set(link) & set(" <>|\"'`\\")


def test_a_query_comes_before_other_arguments() -> None:
    assert query_of({"time_range": "last 1h", "query": "rate(x[5m])", "labels": {}, "n": 3}) == (
        "rate(x[5m])\ntime_range: last 1h\nn: 3"
    )


@pytest.mark.parametrize("content", ["", "7", "{}", '{"range": 7}', '{"range": "a/b"}'])
def test_an_unstated_window_is_ignored(content: str) -> None:
    assert window_of(evidence(GET, content)) is None
