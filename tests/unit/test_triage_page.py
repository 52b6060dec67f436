"""The page about triage: its figures are those of the code."""

from pathlib import Path

import pytest

from adapters.llm.triage.when import USUAL
from tools.analysis.comparable import comparable_from, least_age_s, least_before_s
from tools.analysis.shift import MIN_BASELINE
from tools.core.metric_reading import LEAST_STEP_S

DOCS = Path(__file__).parents[2] / "docs"
AGE_MINUTES = round((comparable_from([(0.0, 1.0)], LEAST_STEP_S) + USUAL.total_seconds()) / 60)


@pytest.mark.parametrize("page", ["triage.md", "first-hour.md"])
def test_a_page_states_the_required_age_of_data(page: str) -> None:
    text = " ".join((DOCS / page).read_text(encoding="utf-8").split())

    assert f"{AGE_MINUTES} minutes" in text


def test_the_page_states_the_required_number_of_samples() -> None:
    assert f"takes {MIN_BASELINE} samples before the range" in (DOCS / "triage.md").read_text(
        "utf-8"
    )


def test_an_answer_states_the_same_age_as_the_pages() -> None:
    usual_s = USUAL.total_seconds()
    assert round(least_age_s(usual_s, least_before_s(LEAST_STEP_S)) / 60) == AGE_MINUTES
