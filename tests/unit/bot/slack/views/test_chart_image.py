"""A chart as SVG: well-formed and inert with any names; as PNG where the extra is installed."""

from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.chart import Chart, Line
from bot.slack.views.charts import painter, svg_of

BEGIN = datetime(2026, 11, 21, 11, 30, tzinfo=UTC)


def line(values: list[float], name: str = "checkout") -> Line:
    return Line(name, tuple((BEGIN + timedelta(minutes=n), v) for n, v in enumerate(values)))


def drawn(chart: Chart) -> ElementTree.Element:
    return ElementTree.fromstring(svg_of(chart))  # noqa: S314 - our own text


@given(
    st.lists(
        st.tuples(st.text(max_size=30), st.lists(st.floats(-1e12, 1e12), max_size=70)), max_size=5
    ),
    st.text(max_size=60),
)
def test_any_chart_is_a_plain_image(lines: list[tuple[str, list[float]]], text: str) -> None:
    made = tuple(line(values, name) for name, values in lines)
    found = drawn(Chart(1, text, text, text, made, usual=1.0, since=BEGIN))

    kinds = {node.tag.rpartition("}")[2] for node in found.iter()}
    assert kinds <= {"svg", "rect", "text", "line", "polyline"}
    assert "href" not in {name for node in found.iter() for name in node.attrib}


def test_the_onset_and_the_baseline_are_drawn() -> None:
    chart = Chart(
        1,
        "checkout",
        "p99",
        "s",
        (line([0.2, 0.2, 1.8]),),
        usual=0.2,
        since=BEGIN + timedelta(minutes=2),
    )

    texts = [node.text for node in drawn(chart).iter() if node.text]
    assert {"E1 checkout: p99, s", "onset", "usual (median)", "11:30 UTC", "11:32"} <= set(texts)


def test_with_the_extra_it_becomes_a_png() -> None:
    pytest.importorskip("resvg_py")
    paint = painter()
    assert paint is not None

    png = paint(Chart(1, "checkout", "p99", "s", (line([0.2, 1.8]),)))

    assert png.startswith(b"\x89PNG")
    assert len(png) > 5_000
