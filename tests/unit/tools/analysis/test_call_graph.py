"""A symptom's reach, and the products that pass trouble on."""

from hypothesis import given
from hypothesis import strategies as st

from tools.analysis.call_graph import CallGraph

NAMES = st.sampled_from("abcdef")


def test_reach_follows_calls_and_nothing_else() -> None:
    graph = CallGraph([("a", "b"), ("b", "c"), ("x", "c")])

    assert graph.reach("a") == {"a", "b", "c"}
    assert graph.reach("c") == {"c"}
    assert not graph.knows("y")


def test_caller_passes_its_trouble_to_the_called_one_that_explains_it() -> None:
    graph = CallGraph([("a", "b"), ("a", "c")])

    assert graph.passes_on("a", {"a": 10.0, "b": 6.0, "c": 1.0}, 0.5) == "b"
    assert graph.passes_on("a", {"a": 10.0, "b": 2.0}, 0.5) == ""
    assert graph.passes_on("b", {"a": 10.0, "b": 2.0}, 0.5) == ""


@given(st.lists(st.tuples(NAMES, NAMES), max_size=20), st.dictionaries(NAMES, st.floats(0, 100)))
def test_trouble_never_goes_round_in_a_pair(
    edges: list[tuple[str, str]], weights: dict[str, float]
) -> None:
    graph = CallGraph(edges)
    passed = {name: graph.passes_on(name, weights, 0.4) for name in "abcdef"}

    assert all(passed[to] != name for name, to in passed.items() if to)
    assert all(name in graph.reach(name) for name in "abcdef")
