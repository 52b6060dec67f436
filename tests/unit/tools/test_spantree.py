"""Traces as they come: duplicated, orphaned, cyclic, skewed, deep and far too many."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.capabilities import Span
from tools.spantree import (
    MAX_LEVELS,
    KeptSpan,
    SpanForest,
    assemble,
    critical_path,
    fold,
    self_time_us,
)


def span(
    span_id: str, parent: str = "", start: int = 0, duration: int = 100, **more: object
) -> Span:
    fields: dict[str, object] = {"service": "svc", "operation": span_id, **more}
    return Span(span_id, parent, start_us=start, duration_us=duration, **fields)  # type: ignore[arg-type]


def self_times(forest: SpanForest) -> dict[str, int]:
    return {key: self_time_us(node, forest) for key, node in forest.nodes.items()}


def flat(roots: list[KeptSpan]) -> list[KeptSpan]:
    found, waiting = [], list(roots)
    while waiting:
        kept = waiting.pop()
        found.append(kept)
        waiting.extend(kept.children)
    return found


def test_siblings_are_ordered_by_start_and_id() -> None:
    forest = assemble([span("c", "r", 20), span("b", "r", 10), span("a", "r", 20), span("r")])
    assert forest.nodes["r"].children == ["b", "a", "c"]


def test_the_most_detailed_duplicate_is_kept() -> None:
    poor, rich = span("a"), span("a", status="error", tags={"k": "v"})
    assert assemble([poor, rich, poor]).nodes["a"].span is rich


def test_an_orphan_is_placed_below_a_placeholder_for_its_parent() -> None:
    forest = assemble([span("r"), span("a", "lost", 5), span("b", "lost", 7)])
    assert set(forest.roots) == {"r", "lost"}
    assert forest.nodes["lost"].synthetic
    assert forest.nodes["lost"].children == ["a", "b"]
    assert forest.primary == "r"


@pytest.mark.parametrize(
    "spans",
    [
        [span("a", "a")],
        [span("a", "b"), span("b", "a")],
        [span("r"), span("a", "c", 1), span("b", "a", 2), span("c", "b", 3), span("d", "c", 4)],
    ],
)
def test_a_cycle_is_cut_and_every_span_stays(spans: list[Span]) -> None:
    forest = assemble(spans)
    assert sorted(node.key for node in forest.preorder()) == sorted(one.span_id for one in spans)
    assert any("cut" in node.note for node in forest.nodes.values())


def test_both_sides_of_a_call_with_one_id_are_shown() -> None:
    forest = assemble(
        [
            span("x", "", 0, 100, service="client"),
            span("x", "", 10, 80, service="server"),
            span("child", "x", 20, 10, service="server"),
        ]
    )
    assert forest.nodes["x"].children == ["x@server"]
    assert forest.nodes["x@server"].children == ["child"]


def test_a_child_before_its_parent_is_noted_and_not_moved() -> None:
    forest = assemble([span("r", "", 50_000), span("a", "r", 20_000)])
    assert forest.nodes["a"].note == "-30 ms (clock skew?)"
    assert forest.nodes["a"].start_us == 20_000


def test_a_child_that_ends_after_its_parent_is_normal() -> None:
    assert assemble([span("r"), span("a", "r", 50, 500)]).nodes["a"].note == ""


def test_self_time_takes_overlapping_children_once_and_only_inside() -> None:
    forest = assemble(
        [span("r"), span("a", "r", 10, 30), span("b", "r", 20, 30), span("c", "r", 90, 500)]
    )
    assert self_times(forest)["r"] == 100 - 40 - 10


def test_the_critical_path_is_the_chain_that_the_end_waited_for() -> None:
    forest = assemble(
        [
            span("r"),
            span("first", "r", 0, 40),
            span("parallel", "r", 5, 20),
            span("last", "r", 40, 55),
            span("inner", "last", 45, 50),
            span("async", "r", 50, 500_000),
        ]
    )
    assert set(critical_path(forest)) == {"r", "first", "last", "inner"}


def test_a_chain_of_thousands_needs_no_recursion() -> None:
    forest = assemble([span(f"s{n}", f"s{n - 1}" if n else "", n, 10_000 - n) for n in range(5000)])
    folded = fold(forest)
    shown = flat(folded.roots)
    assert len(shown) == 200
    assert folded.folded == 4800
    assert sum(kept.folded for kept in shown) == 4800


def test_no_tree_is_deeper_than_the_limit() -> None:
    forest = assemble([span(f"s{n}", f"s{n - 1}" if n else "", n, 500 - n) for n in range(100)])
    depth, level = 0, fold(forest).roots
    while level:
        depth, level = depth + 1, [child for kept in level for child in kept.children]
    assert depth == MAX_LEVELS


def test_folding_keeps_the_path_the_errors_and_the_slowest() -> None:
    quick = [span(f"q{n:04d}", "r", 1, 1) for n in range(1000)]
    slow = span("slow", "r", 1, 50)
    bad = span("bad", "r", 1, 1, status="error")
    path = span("path", "r", 60, 40)
    forest = assemble([*quick, bad, slow, path, span("r")])
    folded = fold(forest, 10)
    shown = {kept.node.key for kept in flat(folded.roots)}
    assert {"r", "path", "bad", "slow"} <= shown
    assert (len(shown), folded.folded, folded.roots[0].folded) == (10, 994, 994)


ids = st.sampled_from([f"s{n}" for n in range(12)])
any_spans = st.lists(
    st.builds(
        span,
        ids,
        st.just("") | ids | st.just("lost"),
        st.integers(0, 1000),
        st.integers(0, 1000),
        service=st.sampled_from(["a", "b"]),
        status=st.sampled_from(["ok", "error", "unset"]),
    ),
    max_size=40,
)


@given(any_spans)
@settings(deadline=None)
def test_every_span_of_any_trace_is_placed_exactly_once(spans: list[Span]) -> None:
    forest = assemble(spans)
    keys = [node.key for node in forest.preorder()]
    assert sorted(keys) == sorted(forest.nodes)
    real = [node for node in forest.nodes.values() if not node.synthetic]
    assert len(real) == len({(one.span_id, one.service) for one in spans})
    assert all(time >= 0 for time in self_times(forest).values())


@given(any_spans, st.integers(1, 20))
@settings(deadline=None)
def test_shown_and_folded_spans_add_up_to_all(spans: list[Span], most: int) -> None:
    forest = assemble(spans)
    folded = fold(forest, most)
    shown = flat(folded.roots)
    assert len({kept.node.key for kept in shown}) == len(shown) <= most
    assert len(shown) + folded.folded == len(forest.nodes)


@given(st.permutations([span("r"), span("a", "r", 1), span("b", "a", 2), span("c", "lost", 3)]))
def test_the_order_of_arrival_does_not_matter(spans: list[Span]) -> None:
    keys = [node.key for node in assemble(spans).preorder()]
    assert keys == ["r", "a", "b", "lost", "c"]
