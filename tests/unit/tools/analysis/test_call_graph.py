"""A symptom's reach, and the products that pass trouble on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.analysis.call_graph import CallGraph, called_in

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


EDGES = st.lists(st.tuples(NAMES, NAMES), max_size=20)


@given(EDGES, EDGES, st.dictionaries(NAMES, st.floats(0, 100)))
def test_trouble_never_goes_round_in_a_pair(
    edges: list[tuple[str, str]], likely: list[tuple[str, str]], weights: dict[str, float]
) -> None:
    graph = CallGraph(edges, likely)
    passed = {name: graph.passes_on(name, weights, 0.4) for name in "abcdef"}

    assert all(passed[to] != name for name, to in passed.items() if to)
    assert all(name in graph.reach(name) for name in "abcdef")


def test_a_likely_edge_explains_and_rules_out_no_suspect() -> None:
    graph = CallGraph([("a", "b")], [("a", "c"), ("x", "y"), ("b", "a")])

    assert graph.passes_on("a", {"a": 10.0, "c": 9.0}, 0.5) == "c"
    assert graph.reach("a") == {"a", "b", "c"}
    assert graph.reach("b") == {"b"}
    assert not graph.knows("y")
    assert not graph.called_by("x")


@pytest.mark.parametrize(
    ("error", "called"),
    [
        ("dial tcp: lookup stock on 10.0.0.2: no such host", ["stock"]),
        ("GET http://stock/v1/items: timeout", ["stock"]),
        ("could not connect to `stock`: refused", ["stock"]),
        ("stock:8080: connection reset", ["stock"]),
        ("rejected a request from stock: no token", []),
        ("broken pipe in the response to stock", []),
        ("from stock:49152: bad frame", []),
        ("connect to stock-db failed", []),
        ("stock is empty", []),
        ("", []),
    ],
)
def test_an_error_of_a_client_names_its_server(error: str, called: list[str]) -> None:
    assert list(called_in(error, ["stock"])) == called


@given(st.text(max_size=60), st.text(max_size=12))
def test_any_text_and_name_can_be_searched(error: str, name: str) -> None:
    assert set(called_in(error, [name])) <= {name}
