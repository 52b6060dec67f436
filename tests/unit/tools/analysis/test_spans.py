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


def test_time_of_its_own_that_grew_is_the_called_ones() -> None:
    found = read_traces(BEFORE, [trace(n, own_ms=200) for n in range(10)])

    assert [(s.product, s.what, s.before, s.after) for s in found.shifts] == [
        ("cart", "own", 10.0, 200.0)
    ]
    assert found.calls == {("web", "cart"): 20}


def test_way_that_grew_is_neither_ones_own_time() -> None:
    found = read_traces(BEFORE, [trace(n, way_ms=300) for n in range(10)])

    assert [(s.product, s.what, s.callee) for s in found.shifts] == [("web", "way", "cart")]
    assert found.ways["cart"].share == 1.0
    assert found.ways["web"].share < 1.0


def test_share_of_failures_that_grew_is_told() -> None:
    found = read_traces(BEFORE, [trace(n, status="error" if n < 4 else "ok") for n in range(10)])

    assert [(s.product, s.what, s.after) for s in found.shifts] == [("cart", "failing", 0.4)]


def test_the_same_traces_did_not_change() -> None:
    assert read_traces(BEFORE, BEFORE).shifts == []


def test_too_few_say_nothing() -> None:
    assert read_traces(BEFORE, [trace(1, own_ms=900)]).shifts == []


def test_nothing_is_nothing() -> None:
    found = read_traces([], [])

    assert (found.traces_before, found.traces_after, found.usual_ms) == (0, 0, 0.0)
