"""One pod of twelve, one zone, one dependency: the label that separates what moved from what did not."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.analysis.explaining_label import Explained, Labels, explaining_label

Seen = tuple[Labels, bool]
PODS: Sequence[Seen] = [
    ({"svc": "search", "pod": f"search-{number}", "zone": "ab"[number % 2]}, number == 7)
    for number in range(12)
]
ZONES: Sequence[Seen] = [
    ({"svc": "search", "pod": f"search-{number}", "zone": "ab"[number % 2]}, number % 2 == 0)
    for number in range(12)
]


@pytest.mark.parametrize(
    ("series", "found"),
    [
        (PODS, Explained("pod", "search-7", 12)),
        (ZONES, Explained("zone", "a", 2)),
        ([(labels, True) for labels, _ in PODS], None),
        ([(labels, False) for labels, _ in PODS], None),
        ([(labels, number in {1, 4}) for number, (labels, _) in enumerate(PODS)], None),
        ([({"to": "bank"}, True), ({"to": "maps"}, False)], Explained("to", "bank", 2)),
        ([({"to": "bank"}, True), ({}, False)], None),
        ([], None),
    ],
)
def test_value_of_all_and_only_the_moved_series_explains(
    series: Sequence[Seen], found: Explained | None
) -> None:
    assert explaining_label(series) == found


def test_a_pod_is_named_among_equally_good_labels() -> None:
    series = [({"addr": f"10.0.0.{n}", "pod": f"p{n}"}, n == 2) for n in range(4)]

    assert explaining_label(series) == Explained("pod", "p2", 4)


@given(
    st.lists(
        st.tuples(st.dictionaries(st.sampled_from("abc"), st.text(max_size=2)), st.booleans()),
        max_size=12,
    )
)
def test_the_named_value_covers_exactly_the_moved_series(series: list[Seen]) -> None:
    found = explaining_label(series)

    assert found is None or all(
        moved == (labels[found.label] == found.value) for labels, moved in series
    )
