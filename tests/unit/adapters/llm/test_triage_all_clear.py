"""When nothing is wrong: only where every product in question was looked at and nothing vanished."""

from collections.abc import Mapping

import pytest

from tests.fixtures_triage import Investigation, deploy, investigate, moved, world

PRODUCTS = ("checkout", "cart", "payments")
LOOKED = dict.fromkeys(PRODUCTS, "errors latency traffic")
TRAFFIC = {
    "product": "checkout",
    "role": "traffic",
    "signal": "http_requests",
    "how": "zero",
    "usual": 20.0,
    "unit": "requests per second",
    "since": "2026-04-07T14:20:00Z",
}
ENDED = {**TRAFFIC, "role": "latency", "signal": "latency_p99", "how": "ended"}
DOWN = {**TRAFFIC, "role": "other", "signal": "up", "how": "down", "usual": 1.0}
ALERTS = {**DOWN, "product": "cart"}


async def asked(
    question: str = "is checkout ok?",
    deploys: tuple[object, ...] = (),
    swept: Mapping[str, object] | None = None,
    **more: object,
) -> Investigation:
    sweep = {"shifts": [], "within": LOOKED, **(swept or {}), **more}
    return await investigate(world(deploys=deploys, around={"sweep_metrics": sweep}), question)


def verdict(found: Investigation) -> object:
    (stated,) = found.asked("core__report_findings")
    return stated["verdict"]


def suspects(found: Investigation) -> list[str]:
    (stated,) = found.asked("core__report_findings")
    return [one["product"] for one in stated["suspects"]]


async def test_all_existing_signals_compared_and_unchanged_is_healthy() -> None:
    assert verdict(await asked()) == "healthy"
    assert verdict(await asked("what is wrong?")) == "healthy"


@pytest.mark.parametrize(
    ("swept", "question"),
    [
        pytest.param({"within": {**LOOKED, "payments": "traffic"}}, "what is wrong?", id="load"),
        pytest.param({"within": {**LOOKED, "checkout": "traffic"}}, "is checkout ok?", id="own"),
        pytest.param({"unchecked": {"cart": "errors"}}, "what is wrong?", id="role of the second"),
        pytest.param({"unchecked": {"checkout": "cpu"}}, "is checkout ok?", id="role of its own"),
        pytest.param(
            {"within": dict.fromkeys(PRODUCTS, "errors")}, "is checkout slow?", id="complaint"
        ),
        pytest.param({"truncated": True}, "what is wrong?", id="more than is told"),
        pytest.param({"unread_entries": 1}, "is checkout ok?", id="an entry nobody could read"),
    ],
)
async def test_an_uncompared_signal_prevents_the_all_clear(
    swept: Mapping[str, object], question: str
) -> None:
    found = await asked(question, swept=swept)

    assert verdict(found) == "unknown"
    assert "Nothing is wrong" not in found.text
    assert found.marks == ()


@pytest.mark.parametrize(
    ("gone", "words"),
    [
        (TRAFFIC, "traffic fell to zero at 14:20 UTC (normally 20"),
        (ENDED, "no samples of its p99 latency after 14:20 UTC"),
    ],
    ids=["zero", "ended"],
)
@pytest.mark.parametrize("question", ["is checkout ok?", "what is wrong?"])
async def test_signal_that_disappeared_is_a_symptom(
    gone: Mapping[str, object], words: str, question: str
) -> None:
    within = {**LOOKED, "checkout": "errors"}
    found = await asked(question, disappeared=[gone], within=within)

    assert (verdict(found), suspects(found)) == ("symptoms", ["checkout"])
    assert words in found.text
    assert found.marks == ()


async def test_every_product_without_traffic_is_no_all_clear() -> None:
    gone = [{**TRAFFIC, "product": product} for product in PRODUCTS]
    found = await asked("is everything ok?", disappeared=gone)

    assert (verdict(found), set(suspects(found))) == ("symptoms", set(PRODUCTS))


async def test_target_that_is_down_comes_before_the_deploy_of_another_product() -> None:
    slow = moved("checkout", "latency", "2026-04-07T14:11:00Z", worst=0.5, score=6.0)
    row = deploy("checkout", "2026-04-07T14:09:00Z")
    gap = {
        "product": "cart",
        "roles": "",
        "signal": "up",
        "is_down": True,
        "since": ALERTS["since"],
    }
    found = await asked("what is wrong?", (row,), shifts=[slow], disappeared=[ALERTS], gaps=[gap])

    assert (verdict(found), suspects(found)[0]) == ("cause", "cart")
    assert found.text.startswith("**Most likely cause: cart is down since 14:20 UTC.**")
    assert "Not looked at" not in found.text


async def test_series_that_end_everywhere_may_be_the_monitoring() -> None:
    gone = [{**ENDED, "product": product} for product in PRODUCTS]
    found = await asked("what is wrong?", disappeared=gone)

    assert verdict(found) != "healthy"
    assert "Most likely cause" not in found.text


async def test_latency_that_ended_in_many_products_may_be_missing_requests() -> None:
    many = [f"shop-{number}" for number in range(12)]
    gone = [{**ENDED, "product": product} for product in many]
    found = await asked("what is wrong?", disappeared=gone, within=dict.fromkeys(PRODUCTS, "cpu"))

    assert (verdict(found), suspects(found)) == ("unknown", [])
    assert "shop-0: no samples of its p99 latency after 14:20 UTC" in found.text


async def test_latency_that_ended_elsewhere_may_be_missing_requests_and_names_no_suspect() -> None:
    found = await asked("is checkout ok?", disappeared=[{**ENDED, "product": "cart"}])

    assert (verdict(found), suspects(found)) == ("unknown", [])
    assert "cart: no samples of its p99 latency after 14:20 UTC" in found.text


async def test_series_beyond_its_range_is_named_and_prevents_the_all_clear() -> None:
    record = {"product": "checkout", "role": "other", "signal": "fd_open", "usual": 40.0,
              "worst": 900.0, "direction": "up", "spreads": 14.0}  # fmt: skip
    found = await asked(records=[record])

    assert verdict(found) == "unknown"
    words = "checkout: fd open at 900, its highest so far (normally 40)"
    assert words in found.text
    assert found.marks == ()


async def test_series_of_another_product_does_not_prevent_it() -> None:
    record = {"product": "cart", "role": "other", "signal": "fd_open", "usual": 40.0,
              "worst": 900.0, "direction": "up", "spreads": 14.0}  # fmt: skip

    assert verdict(await asked(records=[record])) == "healthy"


@pytest.mark.parametrize("question", ["is checkout ok?", "what is wrong?"])
async def test_series_that_grows_for_hours_prevents_the_all_clear(question: str) -> None:
    grows = {
        **moved("checkout", "other", "2026-04-07T08:00:00Z", worst=3.6e9, score=40.0),
        "signal": "held_octets",
        "usual": 4.9e8,
        "last": 3.6e9,
        "since_before": True,
        "under_way": True,
        "beyond_all_before": True,
    }
    found = await asked(question, shifts=[grows])

    assert verdict(found) != "healthy"
    assert "held octets" in found.text
    assert found.marks == ()


async def test_unreadable_last_day_prevents_it() -> None:
    found = await asked(day_unread="the last day could not be read: upstream: 503")

    assert verdict(found) == "unknown"
    assert "the last 24 hours could not be read" in found.text
    assert found.marks == ()


async def test_all_clear_says_from_when_it_compared() -> None:
    found = await asked(baseline_from="2026-04-07T12:05:00Z", day_from="2026-04-06T08:35:00Z")

    assert "or a problem that began before 2026-04-06 08:35 UTC" in found.text


async def test_constantly_unreachable_target_is_named_and_not_blamed() -> None:
    gone = {**ALERTS, "since": "2026-04-06T08:40:00Z", "since_before": True}
    found = await asked("what is wrong?", disappeared=[gone])

    assert (verdict(found), suspects(found)) == ("symptoms", ["cart"])
    assert "a metrics target is unreachable since before 2026-04-06 08:40 UTC" in found.text
    assert found.marks == ()


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("ended", "no samples of its other (zorbs now) after 14:20 UTC"),
        ("zero", "other (zorbs now) fell to zero at 14:20 UTC (normally 20)"),
    ],
)
async def test_series_without_a_known_role_that_stopped_is_named(how: str, words: str) -> None:
    gone = {**TRAFFIC, "role": "other", "signal": "zorbs_now", "unit": None, "how": how}
    fell = moved("checkout", "other", str(gone["since"]), signal="zorbs_now", unit=None,
                 direction="down", usual=20.0, worst=0.0, last=0.0)  # fmt: skip
    found = await asked(disappeared=[gone], shifts=[fell] if how == "zero" else [])

    assert (verdict(found), suspects(found)) == ("symptoms", ["checkout"])
    assert words in found.text
    assert found.marks == ()


FAILS = {"product": "checkout", "role": "errors", "signal": "http_error_ratio", "unit": "ratio",
         "first": 0.38, "now": 0.38, "direction": "up", "size": 0.0, "limit": 0.05}  # fmt: skip


@pytest.mark.parametrize("question", ["is checkout ok?", "what is wrong?"])
async def test_constantly_high_failures_are_a_symptom(question: str) -> None:
    found = await asked(question, standing=[FAILS])

    assert (verdict(found), suspects(found)) == ("symptoms", ["checkout"])
    assert "38 %" in found.text
    assert found.marks == ()


async def test_failures_of_another_product_are_not_a_symptom_of_the_asked_one() -> None:
    found = await asked(standing=[{**FAILS, "product": "cart"}])

    assert verdict(found) == "healthy"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"first": 0.03, "now": 0.03, "limit": 0.01}, "3 % of requests fail (limit 1 %)"),
        (
            {"first": 0.97, "now": 0.97, "limit": 0.99, "direction": "down"},
            "97 % of requests succeed (limit 99 %)",
        ),
        (
            {
                "role": "other",
                "signal": "oops",
                "unit": None,
                "first": 0.3,
                "now": 0.3,
                "limit": 0.01,
            },
            "other (oops) is 0.3 (the other products are below 0.01)",
        ),
    ],
    ids=["failing", "succeeding", "unlike the others"],
)
@pytest.mark.parametrize("question", ["is checkout ok?", "what is wrong?"])
async def test_what_may_be_a_constant_failure_prevents_the_all_clear_without_a_suspect(
    question: str, row: Mapping[str, object], words: str
) -> None:
    within = dict.fromkeys(PRODUCTS, "errors latency other traffic")
    found = await asked(question, standing=[{**FAILS, **row}], within=within)

    assert (verdict(found), suspects(found)) == ("unknown", [])
    assert words in found.text
    assert found.marks == ()


async def test_requests_without_latency_and_failures_prevent_the_all_clear() -> None:
    found = await asked("what is wrong?", within={**LOOKED, "cart": "other queue traffic"})

    assert verdict(found) == "unknown"
    assert "neither latency nor errors of cart are measured" in found.text


@pytest.mark.parametrize(
    ("falls", "compared", "named"),
    [(False, 200, ["cart"]), (True, 200, []), (False, 900, [])],
    ids=["of few series", "and one fell", "of so many that chance explains it"],
)
async def test_two_signals_of_one_product_that_rose_as_never_before_name_it(
    falls: bool, compared: int, named: list[str]
) -> None:
    way = {"direction": "down" if falls else "up"}
    record = {"product": "cart", "role": "other", "signal": "held", "usual": 40.0, "worst": 50.0,
              "spreads": 14.0, **way}  # fmt: skip
    rose = moved("cart", "other", "2026-04-07T14:20:00Z", signal="burn", unit=None, usual=1.1,
                 worst=4.3, last=1.8, score=5.0, beyond_all_before=True)  # fmt: skip
    found = await asked("which one is it?", records=[record], shifts=[rose], compared=compared)

    assert suspects(found) == named
