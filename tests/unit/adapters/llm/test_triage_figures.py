"""Figures have people's units, and never more digits than their rounding."""

import pytest

from adapters.llm.triage.figures import in_words


@pytest.mark.parametrize(
    ("value", "beside", "unit", "words"),
    [
        (1.744, 0.213, "seconds", ("1.7 s", "0.21 s")),
        (0.72, 0.033, "seconds", ("720 ms", "33 ms")),
        (1.7, 0.0035, "seconds", ("1.7 s", "3.5 ms")),
        (708.2, 35.13, "milliseconds", ("708 ms", "35 ms")),
        (0.07401, 0.004513, "ratio", ("7.4 %", "0.45 %")),
        (0.974, 0.969, "ratio", ("97.4 %", "96.9 %")),
        (7.4, 0.4, "percent", ("7.4 %", "0.4 %")),
        (1.734e9, 4.1e8, "bytes", ("1.7 GB", "0.41 GB")),
        (495.5, 64.63, "per second", ("496/s", "65/s")),
        (1234.4, 0.0, "", ("1,234", "0")),
    ],
)
def test_figures_have_common_units(
    value: float, beside: float, unit: str, words: tuple[str, str]
) -> None:
    assert in_words(value, beside, unit) == words
