"""A chart's block: within Slack's limits with any names, with the baseline and the onset."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.demo.workspace.block_rules import check_blocks
from bot.domain.chart import Chart, Line
from bot.slack.views.charts import USUAL, chart_block, label

BEGIN = datetime(2026, 11, 21, 11, 30, tzinfo=UTC)
HOSTILE = (
    "<!channel> <@U0RESPOND1>",
    "https://evil.example/?q=1",
    "evil.example",
    "mailto:a@evil.example",
    "[a](https://evil.example)",
    "\u202egnp.exe\x1b[31m\x00",
    "*bold* `code`\n```",
    "x" * 500,
    "",
    "\U0001f4a5" * 60,
)


def line(*values: float, name: str = "checkout", step_s: float = 60) -> Line:
    points = ((BEGIN + timedelta(seconds=n * step_s), value) for n, value in enumerate(values))
    return Line(name, tuple(points))


def chart(*lines: Line, **more: Any) -> Chart:
    return Chart(1, more.pop("product", "checkout"), more.pop("metric", "p99"), "s", lines, **more)


def block(made: Chart) -> Any:
    """Its block, which Slack would take."""
    found = chart_block(made)
    assert found is not None
    check_blocks([found], "message")
    return found


def test_a_line_has_its_baseline_and_its_onset() -> None:
    made = block(
        chart(line(0.2, 0.2, 1.8, 1.7), usual=0.2, since=BEGIN + timedelta(minutes=2, seconds=20))
    )

    assert made["title"] == "E1 checkout: p99"
    assert made["chart"]["axis_config"] == {
        "categories": ["11:30", "11:31", "11:32 onset", "11:33"],
        "x_label": "UTC, unusual since 11:32",
        "y_label": "s",
    }
    assert {
        each["name"]: [p["value"] for p in each["data"]] for each in made["chart"]["series"]
    } == {
        "checkout": [0.2, 0.2, 1.8, 1.7],
        USUAL: [0.2] * 4,
    }


def test_an_onset_before_the_chart_is_shown_only_below_it() -> None:
    made = block(chart(line(1.8, 1.7), since=BEGIN - timedelta(minutes=5)))

    assert made["chart"]["axis_config"]["categories"] == ["11:30", "11:31"]
    assert made["chart"]["axis_config"]["x_label"] == "UTC, unusual since 11:25"


def test_an_onset_of_another_day_has_its_date() -> None:
    made = block(chart(line(1, 2, 3), since=BEGIN - timedelta(days=2)))
    assert made["chart"]["axis_config"]["x_label"] == "UTC, unusual since 19 Nov 11:30"


def test_no_series_takes_the_name_of_the_baseline() -> None:
    made = block(chart(line(9, 9, 9, name=USUAL), usual=0.2))
    assert [(each["name"], each["data"][0]["value"]) for each in made["chart"]["series"]] == [
        (f"{USUAL} 2", 9),
        (USUAL, 0.2),
    ]


def test_the_moment_of_a_confirmation_is_labelled() -> None:
    at = BEGIN + timedelta(minutes=2)
    made = block(
        chart(line(1.8, 1.7, 0.9, 0.2, step_s=60), since=at, event="confirmed", product="")
    )

    assert made["chart"]["axis_config"]["categories"][2] == "11:32 confirmed"
    assert made["chart"]["axis_config"]["x_label"] == "UTC, confirmed 11:32"


def test_ten_thousand_points_become_twenty() -> None:
    made = block(chart(line(*([1.0] * 9_999), 7.0), usual=1.0))

    values = [point["value"] for point in made["chart"]["series"][0]["data"]]
    assert len(values) == 20
    assert values[-1] == 7.0


@pytest.mark.parametrize(
    ("step_s", "labels"),
    [
        (60, ["11:30", "11:31", "11:32"]),
        (15, ["11:30:00", "11:30:15", "11:30:30"]),
        (0.4, ["11:30:00"]),
        (86_400, ["21 Nov 11:30", "22 Nov 11:30", "23 Nov 11:30"]),
    ],
)
def test_no_two_ticks_of_the_axis_share_a_label(step_s: float, labels: list[str]) -> None:
    made = chart_block(chart(line(1, 2, 3, step_s=step_s)))

    shown = made["chart"]["axis_config"]["categories"] if made else labels  # type: ignore[index, call-overload]
    assert shown == labels


def test_series_with_different_sample_times_share_the_axis() -> None:
    late = Line(
        "b", tuple((at + timedelta(seconds=7), value) for at, value in line(5, 6, 9).points)
    )
    made = block(chart(line(1, 2, 3, name="a"), late))

    names = [series["name"] for series in made["chart"]["series"]]
    lengths = {len(series["data"]) for series in made["chart"]["series"]}
    assert names == ["a", "b"]
    assert lengths == {3}


def test_a_series_without_common_times_is_not_drawn() -> None:
    other = Line("b", tuple((at + timedelta(days=1), value) for at, value in line(5, 6).points))
    made = block(chart(line(1, 2, name="a"), other))

    assert [series["name"] for series in made["chart"]["series"]] == ["a"]


def test_series_with_the_same_name_are_distinguished() -> None:
    made = block(chart(*[line(1, 2, name="x" * 30) for _ in range(3)], usual=1))

    assert len({series["name"] for series in made["chart"]["series"]}) == 4


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_name_is_only_a_name(text: str) -> None:
    made = str(block(chart(line(1, 2, name=text), line(2, 3), product=text, metric=text)))

    assert "evil.example" not in made
    assert "://" not in made
    assert "<" not in made
    assert "\\x1b" not in made
    assert "@channel" not in made


@pytest.mark.parametrize("text", ["p99.9", "http_requests_total", "v2.4.0", "500 ms", "1.5"])
def test_text_that_is_not_read_as_an_address_is_unchanged(text: str) -> None:
    assert label(text, 50) == text


@given(
    st.lists(
        st.tuples(st.text(max_size=60), st.lists(st.floats(-1e9, 1e9), max_size=30)), max_size=5
    ),
    st.text(max_size=80),
    st.floats(0.001, 10**6),
)
def test_slack_accepts_any_chart(
    lines: list[tuple[str, list[float]]], text: str, step_s: float
) -> None:
    made = chart(
        *(line(*values, name=name, step_s=step_s) for name, values in lines),
        product=text, metric=text, usual=1.0, since=BEGIN,
    )  # fmt: skip

    check_blocks([found] if (found := chart_block(made)) else [], "message")
