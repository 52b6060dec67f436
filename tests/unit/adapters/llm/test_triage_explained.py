"""The label that explains a shift names a part of the product, or the service that it waited for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.triage.explained import called_of, part_of, seen_by


@pytest.mark.parametrize(
    ("only_at", "called"),
    [
        ("peer=bank (1 of 2)", "bank"),
        ("peer_service=bank (1 of 2)", "bank"),
        ("destination_workload=bank (1 of 9)", "bank"),
        ("upstream=api.bank.example (1 of 3)", "api.bank.example"),
        ("pod=bank-7 (1 of 12)", ""),
        ("topic=bank (1 of 12)", ""),
        ("", ""),
        ("peer", ""),
    ],
)
def test_only_a_label_of_the_other_end_names_a_called_service(only_at: str, called: str) -> None:
    assert called_of(only_at) == called


def test_a_part_is_reported_with_the_number_of_parts() -> None:
    assert part_of("pod=search-7 (1 of 12)") == "only pod=search-7, 1 of 12"
    assert part_of("") == ""


@pytest.mark.parametrize(
    ("callers", "told"),
    [
        (["web"], "as its caller web sees it"),
        (["web", "cart", "web"], "as its callers cart and web see it"),
        (["a", "b", "c", "d", "e"], "as its callers a, b, c and 2 more see it"),
    ],
)
def test_callers_are_named(callers: list[str], told: str) -> None:
    assert seen_by(callers) == told


@given(st.text(), st.text())
def test_outside_text_formats_no_answer(label: str, value: str) -> None:
    for text in (part_of(f"{label}={value} (1 of 2)"), called_of(f"peer={value} (1 of 2)")):
        assert not set(text) & set("*<>@`[]\n|~")
