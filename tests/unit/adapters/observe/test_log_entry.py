"""The order of lines and their levels, against a simple reference."""

import json
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from adapters.observe.log_entry import Entry, in_order, line_of, lines_of

LABELS = st.dictionaries(
    st.sampled_from(["level", "detected_level", "host", "pod", "trace_id", "app"]),
    st.sampled_from(["", "error", "WARN", "unknown", "checkout-1"]),
    max_size=3,
)
LINES = st.tuples(st.integers(0, 4), st.sampled_from(["a", "b", "ERROR c"]), LABELS)
ENTRIES = st.lists(LINES.map(lambda each: Entry(*each)), max_size=12)


def place(entry: Entry) -> tuple[int, str, str]:
    return -entry.ts_ns, json.dumps(entry.labels, sort_keys=True), entry.line


@given(ENTRIES)
async def test_lines_are_newest_first_and_identical_ones_are_numbered(entries: list[Entry]) -> None:
    ordered = await in_order(entries)
    assert [place(entry) for entry in ordered] == sorted(place(entry) for entry in entries)
    before: Counter[tuple[int, str, str]] = Counter()
    for entry in ordered:
        assert entry.copy == before[place(entry)]
        before[place(entry)] += 1


@given(ENTRIES)
def test_lines_that_share_labels_are_read_like_single_ones(entries: list[Entry]) -> None:
    shared = [entry._replace(labels=entries[0].labels) for entry in entries]
    for some in (entries, shared):
        assert lines_of(some) == tuple(line_of(entry) for entry in some)
