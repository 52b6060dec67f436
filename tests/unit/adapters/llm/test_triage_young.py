"""Data that has just begun: no rise is made up of how rates begin, and what is measured is not called missing."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from tests.fixtures_swept import measured
from tests.fixtures_triage import Investigation, investigate, world

PRODUCTS = ("checkout", "web")
NOW = datetime(2026, 11, 23, 9, 31, tzinfo=UTC)
TOOLS = ("core__get_recent_deploys", "core__sweep_metrics", "core__report_findings")


def counter(product: str, name: str, per_minute: float, minutes: int = 12) -> Mapping[str, object]:
    """As a rate begins: with a quarter in its first minute."""
    times = [NOW - timedelta(minutes=minutes - number) for number in range(minutes + 1)]
    values = [0.0, *(per_minute * (number + 0.25) for number in range(minutes))]
    points = [(at.timestamp(), value) for at, value in zip(times, values, strict=True)]
    return {"name": name, "labels": {"service": product}, "points": points}


async def asked(question: str) -> Investigation:
    series = [
        counter("checkout", "http_requests_total", 2_400),
        counter("checkout", "process_cpu_seconds_total", 21),
        counter("web", "http_requests_total", 7_200),
    ]
    tools = measured(NOW, series, PRODUCTS)
    return await investigate(tools, question, PRODUCTS, TOOLS, now=NOW)


@pytest.mark.parametrize("question", ["why is checkout slow?", "is web slow?"])
async def test_a_rates_first_values_are_not_a_rise(question: str) -> None:
    found = await asked(question)

    assert "when its data began" not in found.text
    assert "The clearest anomaly is" not in found.text
    assert "look first at" not in found.text
    assert "not enough history to compare" in found.text


async def test_a_measured_young_signal_is_not_called_missing() -> None:
    found = await asked("why do payments time out?")

    assert "web: not enough history to compare" in found.text
    assert "none of web" not in found.text


async def test_traffic_alone_makes_no_product_the_first_to_check() -> None:
    row = {"product": "web", "role": "traffic", "signal": "requests", "unit": "per second"}
    row |= {"first": 29.0, "now": 128.0, "direction": "up", "size": 60.0}  # type: ignore[dict-item]
    swept = {"shifts": [], "within": {}, "too_short": {"checkout": "latency", "web": "traffic"}}
    told = world(around={"sweep_metrics": {**swept, "standing": [row]}})
    found = await investigate(told, "why is checkout slow?", PRODUCTS)

    assert "web: traffic is 128/s (29/s at first)" in found.text
    assert "look first at" not in found.text
    assert "stands out is web" not in found.text


def unnamed(signal: str, product: str = "checkout") -> Mapping[str, object]:
    row = {"product": product, "role": "other", "signal": signal}
    return {**row, "first": 29.0, "now": 128.0, "direction": "up", "size": 60.0}


@pytest.mark.parametrize(
    ("signals", "named"),
    [(["feku"], False), (["feku", "burn"], True)],
    ids=["one alone may be good news", "two at once hardly are"],
)
async def test_signals_without_a_name_decide_where_to_look(signals: list[str], named: bool) -> None:
    swept = {"shifts": [], "within": {}, "too_short": {"checkout": "other"}}
    standing = [unnamed(signal) for signal in signals]
    told = world(around={"sweep_metrics": {**swept, "standing": standing}})
    found = await investigate(told, "what is wrong with checkout?", PRODUCTS)

    assert "other (feku) is 128 (29 at first)" in found.text
    assert ("look first at checkout" in found.text) is named


async def test_figures_that_two_products_have_alike_are_of_their_machine() -> None:
    both = [unnamed(signal, name) for signal in ("feku", "burn") for name in ("checkout", "web")]
    swept = {"shifts": [], "within": {}, "too_short": {"checkout": "other", "web": "other"}}
    told = world(around={"sweep_metrics": {**swept, "standing": both}})
    found = await investigate(told, "what is wrong with checkout?", PRODUCTS)

    assert "other (feku) is 128 (29 at first)" in found.text
    assert "look first at" not in found.text


def slower(product: str, now: float) -> Mapping[str, object]:
    row = {"product": product, "role": "latency", "signal": "p95latency", "unit": "seconds"}
    return {**row, "first": 0.005, "now": now, "direction": "up", "size": 300.0}


@pytest.mark.parametrize(
    ("callee_s", "first"),
    [(1.9, "payments"), (0.3, "checkout")],
    ids=["the called one explains it", "the called one grew far less"],
)
async def test_the_deepest_young_product_that_explains_the_growth_comes_first(
    callee_s: float, first: str
) -> None:
    young = dict.fromkeys(("checkout", "payments"), "latency")
    standing = [slower("checkout", 2.0), slower("payments", callee_s)]
    swept = {"shifts": [], "within": {}, "too_short": young, "standing": standing}
    told = world(calls=["checkout > payments"], around={"sweep_metrics": swept})
    found = await investigate(told, "why is checkout slow?", ("checkout", "payments"))

    assert f"look first at {first}" in found.text
