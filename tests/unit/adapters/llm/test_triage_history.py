"""The last days in an answer: resources that fill up within hours, and what is normal at this time."""

import re

import pytest

from tests.fixtures_swept import measured
from tests.fixtures_triage import Investigation, investigate
from tests.packs import NOW
from tests.unit.tools.core.test_metric_history import peak, series

PRODUCTS = ("web", "cart")
TOOLS = ("core__get_recent_deploys", "core__sweep_metrics", "core__report_findings")


async def asked(question: str, *rows: object) -> Investigation:
    return await investigate(
        measured(NOW, rows, PRODUCTS),  # type: ignore[arg-type]
        question,
        PRODUCTS,
        TOOLS,
        now=NOW,
    )


@pytest.mark.parametrize(
    ("grown", "when"), [(45, "at this rate full in about 2 h"), (52, r"full in about [56]\d min")]
)
async def test_a_filling_resource_is_reported_with_the_time_left(grown: int, when: str) -> None:
    leak = lambda ago: 40 + grown * max(0, 360 - ago) / 360 + ago % 3 / 9  # noqa: E731
    found = await asked("what is wrong with web?", series("memory_usage_percent", leak))

    assert re.search(when, found.text)
    assert not found.marks


async def test_a_daily_peak_is_called_normal_for_this_time() -> None:
    rows = [series("http_requests_per_second", peak), series("http_errors_ratio", lambda _: 0.001)]
    found = await asked("is web ok?", *rows)

    (stated,) = found.asked("core__report_findings")
    assert "normal for this time of day: web traffic" in " ".join(stated["looked_at"])
