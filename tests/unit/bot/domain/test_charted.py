"""Charts out of results: the points that are there, for the statements that stand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from bot.domain.chart import Chart
from bot.domain.charted import chart_for, charts_of
from bot.domain.claims import ClaimState
from tests.charted_results import (
    BEGIN,
    COMPARE,
    GET,
    SWEEP,
    answered,
    compared,
    evidence,
    result,
    samples,
    shift,
    swept,
)
from tools.core.compared_answer import ComparedSample, CompareOutput
from tools.core.metric_series import MetricSeries, MetricsOutput, Sample
from tools.core.metric_sweep import Course, MetricShift, MetricSweep

ASKED: dict[str, JsonValue] = {"product": "checkout", "metric_name": "p99"}
WORLD = swept(
    shift("web", "latency", "http_p99"),
    shift("checkout", "latency", "http_p50"),
    shift("checkout", "latency", "http_p99"),
    shift("checkout", "cpu", "cpu_ratio"),
)


def drawn(tool: str, fields: dict[str, JsonValue] | str) -> tuple[Chart, ...]:
    return charts_of(evidence(tool, fields), ASKED)


def signals(says: str) -> list[tuple[str, str]]:
    chart = chart_for(answered(result(SWEEP, WORLD), says=says))
    return [(chart.product, chart.metric)] if chart else []


def test_a_comparison_is_charted_with_its_baseline_and_onset() -> None:
    (chart,) = drawn(COMPARE, compared())

    assert [value for _, value in chart.lines[0].points] == [0.2, 0.21, 0.2, 1.7, 1.8, 1.6]
    assert (chart.usual, chart.unit, chart.lines[0].name) == (0.2, "seconds", "checkout")
    assert chart.since == chart.lines[0].points[3][0]


def test_several_series_are_named_by_their_distinguishing_labels() -> None:
    series: list[JsonValue] = [
        {"labels": {"job": "checkout", "pod": f"checkout-{n}"}, "samples": samples([n, 1.0])}
        for n in range(7)
    ]
    (chart,) = drawn(GET, {"series": series})

    assert [line.name for line in chart.lines] == [f"checkout-{n}" for n in range(5)]


def test_a_sweeps_course_ends_with_its_range() -> None:
    (chart,) = drawn(SWEEP, swept(shift("checkout", "cpu", "cpu_ratio")))

    assert [(at - BEGIN).total_seconds() for at, _ in chart.lines[0].points] == [0, 600, 1200, 1800]


def test_charted_fields_exist_in_the_tools_outputs() -> None:
    assert set(compared()) <= set(CompareOutput.model_fields)
    assert set(WORLD) <= set(MetricSweep.model_fields)
    assert set(shift("a", "cpu", "b")) <= set(MetricShift.model_fields)
    assert {"before_end_s", "values"} == set(Course.model_fields)
    assert {"unit", "samples", "series"} <= set(MetricsOutput.model_fields)
    assert {"labels", "samples"} <= set(MetricSeries.model_fields)
    assert {"ts", "value"} <= set(Sample.model_fields) & set(ComparedSample.model_fields)


@pytest.mark.parametrize(
    "values",
    [
        [],
        [1.5],
        [None, "1.5", True, {}],
        [1.5, None],
    ],
    ids=["empty", "one point", "no numbers", "one number"],
)
def test_data_without_a_line_is_not_charted(values: list[JsonValue]) -> None:
    assert drawn(COMPARE, compared(values)) == ()


def test_non_finite_points_are_omitted() -> None:
    content = '{"samples": [{"ts": "2026-11-21T11:30:00Z", "value": 1e999}, %s, %s]}'
    two = [f'{{"ts": "2026-11-21T11:3{n}:00Z", "value": {n}}}' for n in (1, 2)]

    assert drawn(GET, content.replace("1e999", "NaN") % tuple(two)) == ()
    assert all(
        value < 3
        for chart in drawn(GET, content % tuple(two))
        for _, value in chart.lines[0].points
    )


@pytest.mark.parametrize("content", ["", "not json", "[]", "7", '{"samples": 7}', "[" * 5_000])
def test_an_unreadable_result_has_no_chart(content: str) -> None:
    assert drawn(GET, content) == ()


def test_a_failed_call_and_another_tool_have_no_chart() -> None:
    assert drawn("core__get_logs", compared()) == ()
    assert drawn("mcp__core__get_metrics", compared()) == ()


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ("p99 latency rose to 1.8 s [E1]", [("checkout", "http_p99")]),
        ("p50 of checkout is up [E1]", [("checkout", "http_p50")]),
        ("CPU rose to 54 % [E1]", [("checkout", "cpu_ratio")]),
        ("web is slow, too [E1]", [("web", "http_p99")]),
        ("http_p99 doubled [E1]", [("checkout", "http_p99")]),
        ("CPU rose [E1]\nweb is slow [E1]", [("checkout", "cpu_ratio")]),
        ("CPU rose [E1]\nCPU is at 54 % [E1]", [("checkout", "cpu_ratio")]),
        ("web had a deploy [E1]", []),
        ("the CPU of pricing-web is fine [E1]", [("checkout", "cpu_ratio")]),
        ("CPU rose to 54 %", []),
        ("CPU rose to 54 % [E2]", []),
    ],
)
def test_the_signal_that_the_sentence_names_is_charted(
    says: str, expected: list[tuple[str, str]]
) -> None:
    assert signals(says) == expected


@pytest.mark.parametrize(
    ("state", "number"),
    [
        (ClaimState.SUPPORTED, 1),
        (ClaimState.UNCHECKED, 1),
        (ClaimState.CONTRADICTED, 0),
    ],
)
def test_a_marked_statement_has_no_chart(state: ClaimState, number: int) -> None:
    final = answered(result(COMPARE, compared()), says="p99 is 1.8 s [E1]", state=state)

    assert bool(chart_for(final)) is bool(number)


KEYS = st.sampled_from(
    ["samples", "series", "shifts", "course", "ts", "value", "values", "before_end_s", "range"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers(-(2**60), 2**60) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.sampled_from([COMPARE, GET, SWEEP]), st.dictionaries(KEYS, JSON, max_size=4))
def test_no_result_breaks_the_chart(tool: str, fields: dict[str, JsonValue]) -> None:
    for chart in drawn(tool, fields):
        assert all(len(line.points) > 1 for line in chart.lines)
