"""Requests that end early: after which call, and which product ends them."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.analysis.cut_requests import cut_requests
from tools.capabilities import Span, Trace

ROUTE = ("rates", "stock", "mail")  # what shop calls for an order, in this order
NAMES = st.sampled_from(("a", "b", "c", ""))


def order(number: int, called: Sequence[str] = ROUTE, rates_call: Sequence[str] = ()) -> Trace:
    """One order of the shop; `rates_call` is what the rates service calls in turn."""
    spans = [Span("shop", "", "shop", "POST /orders", 0, 1000 * len(called) + 1200)]
    for place, product in enumerate(called):
        at = 1000 * (place + 1)
        spans.append(Span(f"to-{product}", "shop", "shop", f"call {product}", at, 900))
        spans.append(Span(product, f"to-{product}", product, "GET /", at + 10, 700))
    for place, product in enumerate(rates_call if "rates" in called else ()):
        spans.append(Span(product, "rates", product, "GET /", 1100 + place, 50))
    return Trace(f"{number:032x}", tuple(spans))


def ended(span: Span, end_us: int) -> Span:
    """The same span with another end."""
    return replace(span, duration_us=end_us - span.start_us)


def orders(
    number: int, called: Sequence[str] = ROUTE, rates_call: Sequence[str] = ()
) -> Sequence[Trace]:
    return [order(one, called, rates_call) for one in range(number)]


@pytest.mark.parametrize(
    ("before", "after", "product", "last"),
    [
        pytest.param(orders(20), orders(10, ROUTE[:1]), "rates", "rates", id="leaf"),
        pytest.param(orders(20), orders(10, ()), "shop", "", id="no call at all"),
        pytest.param(
            orders(20, ROUTE, ("bank", "tax")),
            orders(10, ROUTE[:1], ("bank", "tax")),
            "shop",
            "rates",
            id="the called product did all that it always does",
        ),
        pytest.param(
            orders(20, ROUTE, ("bank", "tax")),
            orders(10, ROUTE[:1], ("bank",)),
            "bank",
            "rates",
            id="the deepest call that nothing follows",
        ),
    ],
)
def test_product_that_ends_requests_early_is_named(
    before: Sequence[Trace], after: Sequence[Trace], product: str, last: str
) -> None:
    found = cut_requests(before, after)

    assert (found[0].product, found[0].caller, found[0].last) == (product, "shop", last)
    assert (found[0].before, found[0].after, found[0].n) == (0.0, 1.0, 10)


def test_a_call_that_never_arrives_belongs_to_its_caller() -> None:
    """The client's span is there, the server's is not."""
    cut = [
        Trace(one.trace_id, tuple(span for span in one.spans if span.service != "mail"))
        for one in orders(10)
    ]
    cut = [Trace(one.trace_id, (ended(one.spans[0], 3950), *one.spans[1:])) for one in cut]

    assert [(one.product, one.last) for one in cut_requests(orders(20), cut)] == [("shop", "shop")]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(orders(20), orders(10), id="nothing changed"),
        pytest.param(orders(20), [*orders(9), *orders(1, ROUTE[:1])], id="one of ten"),
        pytest.param(orders(4), orders(10, ROUTE[:1]), id="too few before"),
        pytest.param([], orders(10, ROUTE[:1]), id="none before"),
        pytest.param(orders(20, ROUTE[:1]), orders(10), id="requests go further than before"),
    ],
)
def test_chance_and_harmless_ends_are_not_reported(
    before: Sequence[Trace], after: Sequence[Trace]
) -> None:
    assert cut_requests(before, after) == []


def test_lost_spans_do_not_end_a_request() -> None:
    """It took as long as always, so it did work that no span shows."""
    whole = order(1).spans[0].duration_us
    lost = [
        Trace(one.trace_id, (ended(one.spans[0], whole), *one.spans[1:]))
        for one in orders(10, ROUTE[:1])
    ]

    assert cut_requests(orders(20), lost) == []


def test_clock_of_the_called_host_does_not_change_the_order_of_calls() -> None:
    late_clock = [
        Trace(
            one.trace_id,
            tuple(
                Span(s.span_id, s.parent_id, s.service, s.operation, s.start_us + 60_000, 700)
                if s.service == "rates"
                else s
                for s in one.spans
            ),
        )
        for one in orders(10)
    ]

    assert cut_requests(orders(20), late_clock) == []


@given(
    st.lists(
        st.lists(
            st.builds(
                Span,
                NAMES,
                NAMES,
                NAMES,
                NAMES,
                st.integers(-(2**64), 2**64),
                st.integers(-(2**64), 2**64),
            ),
            max_size=8,
        ),
        max_size=12,
    )
)
def test_self_parented_spans_and_shared_ids_are_read_to_the_end(
    spans: list[list[Span]],
) -> None:
    traces = [Trace(str(number), tuple(one)) for number, one in enumerate(spans)]

    for one in cut_requests(traces, traces[::-1]):
        assert 0 <= one.before < one.after <= 1
