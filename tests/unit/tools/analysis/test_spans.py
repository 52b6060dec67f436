"""What traces say: own time, the way, failures, and how many of a product's ways got slower."""

from tools.analysis.spans import read_traces
from tools.capabilities import Span, Trace


def trace(number: int, *, own_ms: int = 10, way_ms: int = 2, status: str = "ok") -> Trace:
    """web serves, calls cart through a client's span, cart works."""
    cart = own_ms * 1000
    client = cart + way_ms * 1000
    return Trace(
        f"{number:032x}",
        (
            Span("a", "", "web", "GET /", 0, client + 5000),
            Span("b", "a", "web", "HTTP GET", 1000, client),
            Span("c", "b", "cart", "GET /cart", 1000, cart, status),
        ),
    )


BEFORE = [trace(n) for n in range(10)]


def test_growth_of_own_time_belongs_to_the_called_product() -> None:
    found = read_traces(BEFORE, [trace(n, own_ms=200) for n in range(10)])

    assert [(s.product, s.what, s.before, s.after) for s in found.shifts] == [
        ("cart", "own", 10.0, 200.0)
    ]
    assert found.calls == {("web", "cart"): 20}


def test_growth_of_a_call_path_is_not_own_time() -> None:
    found = read_traces(BEFORE, [trace(n, way_ms=300) for n in range(10)])

    assert [(s.product, s.what, s.callee) for s in found.shifts] == [("web", "way", "cart")]
    assert found.ways["cart"].share == 1.0
    assert found.ways["web"].share < 1.0


def test_a_grown_failure_share_is_reported() -> None:
    found = read_traces(BEFORE, [trace(n, status="error" if n < 4 else "ok") for n in range(10)])

    assert [(s.product, s.what, s.after) for s in found.shifts] == [("cart", "failing", 0.4)]


def test_identical_traces_show_no_change() -> None:
    assert read_traces(BEFORE, BEFORE).shifts == []


def test_too_few_traces_give_no_result() -> None:
    assert read_traces(BEFORE, [trace(1, own_ms=900)]).shifts == []


def test_no_traces_give_no_result() -> None:
    found = read_traces([], [])

    assert (found.traces_before, found.traces_after, found.usual_ms) == (0, 0, 0.0)


def calls_to(number: int, slow: str, slow_ms: int) -> Trace:
    """web calls six products, one of them over a slow way."""
    spans = [Span("root", "", "web", "GET /", 0, 2_000_000)]
    for place, name in enumerate(("ads", "cart", "mail", "pay", "rates", "stock")):
        way_us = (slow_ms if name == slow else 3) * 1000
        spans.append(Span(f"to-{name}", "root", "web", f"call {name}", place, 5000 + way_us))
        spans.append(Span(name, f"to-{name}", name, "GET /", place, 5000))
    return Trace(f"{number:032x}", tuple(spans))


def test_without_older_traces_call_paths_are_compared_with_each_other() -> None:
    found = read_traces([], [calls_to(n, "pay", 300) for n in range(5)])

    assert [(s.product, s.callee, s.is_outlier, s.before, s.after) for s in found.shifts] == [
        ("web", "pay", True, 3.0, 300.0)
    ]
    assert found.ways["pay"].share == 1.0
    assert found.ways["web"].share < 0.5


def test_a_call_path_that_was_always_slow_is_not_an_outlier() -> None:
    slow = [calls_to(n, "pay", 300) for n in range(5)]

    assert read_traces(slow, slow).shifts == []


def test_similar_call_paths_have_no_outlier() -> None:
    assert read_traces([], [calls_to(n, "pay", 20) for n in range(5)]).shifts == []
