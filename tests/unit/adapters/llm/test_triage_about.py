"""The product of an answer, named if it differs from the question's, or if that names none."""

from collections.abc import Mapping, Sequence

import pytest

from tests.fixtures_triage import Investigation, deploy, investigate, moved, world

PRODUCTS = ("checkout", "web")
ONSET = "2026-04-07T14:10:00Z"
ALL = "errors latency traffic"
CHECKOUT_SLOW = [moved("checkout", "latency", ONSET), moved("checkout", "errors", ONSET, worst=0.6)]


async def asked(
    question: str,
    shifts: Sequence[object] = (),
    within: Mapping[str, str] | None = None,
    deploys: Sequence[object] = (),
    around: Mapping[str, object] | None = None,
    products: Sequence[str] = PRODUCTS,
) -> Investigation:
    looked = dict.fromkeys(PRODUCTS, ALL) if within is None else within
    played = world(shifts, deploys, within=looked, around=around)
    return await investigate(played, question, products)


def bullets(found: Investigation) -> list[str]:
    return [line for line in found.text.splitlines() if line.startswith("- ")]


async def test_the_asked_products_state_comes_before_the_clearest_anomaly() -> None:
    row = deploy("checkout", "2026-04-07T14:09:00Z")
    found = await asked("is web ok?", CHECKOUT_SLOW, deploys=[row])

    assert found.text.startswith(
        "You asked about web: its errors, latency, traffic are as usual [E1]. "
        "The clearest anomaly is in checkout [E1].\n\n"
        "**Elsewhere, most likely cause: the deploy of checkout v2 at 14:09 UTC.**"
    )
    assert all("checkout" in line for line in bullets(found))
    assert found.marks == ()


async def test_a_yes_or_no_question_is_answered_by_the_asked_products_own_changes_first() -> None:
    shifts = [*CHECKOUT_SLOW, moved("web", "latency", ONSET, score=5.0)]
    row = deploy("checkout", "2026-04-07T14:09:00Z")
    found = await asked("is web ok?", shifts, deploys=[row])

    assert found.text.startswith(
        "web is not as usual: latency rose to 1.9 s at 14:10 UTC (normally 0.2 s) [E1]; the clearest "
        "anomaly is in checkout [E1].\n\n**Most likely cause: the deploy of checkout v2 at 14:09 UTC.**\n\n"
    )
    assert len(found.asked("core__propose_action")) == 1


async def test_nothing_is_proposed_for_a_product_without_a_link_to_the_asked_one() -> None:
    row = deploy("checkout", "2026-04-07T14:09:00Z")
    found = await asked(
        "What is wrong with web since 2026-04-07T14:20Z?", CHECKOUT_SLOW, deploys=[row]
    )

    assert found.asked("core__propose_action") == []
    assert (
        "I found no link between checkout and web, so I propose nothing for it here: ask about checkout."
        in found.text
    )


CALLED = {"sweep_traces": {"calls": ["web > checkout"], "traces_before": 9, "traces_after": 9}}
NAMED = {
    "error_patterns": {
        "changes": [
            {"product": "web", "level": "warn", "change": "new", "before": 0, "after": 9,
             "expected": 0.0, "example": "checkout: too slow", "names": ["checkout"]}
        ]
    }
}  # fmt: skip


@pytest.mark.parametrize("around", [CALLED, NAMED], ids=["called", "named in its log"])
async def test_a_rollback_is_proposed_for_a_product_that_the_asked_one_calls(
    around: Mapping[str, object],
) -> None:
    row = deploy("checkout", "2026-04-07T14:09:00Z")
    found = await asked("is web ok?", CHECKOUT_SLOW, deploys=[row], around=around)

    assert len(found.asked("core__propose_action")) == 1
    assert "I found no link between" not in found.text


@pytest.mark.parametrize(
    "question",
    [
        "roll back web",
        "roll back the deploy of web of today",
        "please revert web!",
        "can you rollback web?",
    ],
)
async def test_an_unjustified_rollback_request_is_refused_with_the_reason(
    question: str,
) -> None:
    rows = [deploy("checkout", "2026-04-07T14:09:00Z"), deploy("web", "2026-04-07T12:40:00Z", "v9")]
    shifts = [*CHECKOUT_SLOW, moved("web", "latency", ONSET, score=5.0)]
    found = await asked(question, shifts, deploys=rows)

    assert found.asked("core__propose_action") == []
    assert found.text.startswith(
        "I do not propose a rollback of web: no problem of its own began soon after its last deploy, "
        "v9 at 12:40 UTC [E5].\n\n"
    )
    assert found.marks == ()


async def test_a_rollback_of_a_product_without_deploys_is_refused() -> None:
    found = await asked("roll back web")

    assert found.text.startswith(
        "I do not propose a rollback of web: I found no deploy of it in that time.\n\n"
    )
    assert found.marks == ()


async def test_a_rollback_of_a_recovered_product_is_refused_with_the_time() -> None:
    row = deploy("checkout", "2026-04-07T14:09:00Z")
    over = [{**each, "until": "2026-04-07T14:25:00Z"} for each in CHECKOUT_SLOW]
    found = await asked("roll back checkout", over, deploys=[row])

    assert found.asked("core__propose_action") == []
    assert found.text.startswith(
        "I do not propose a rollback of checkout: what changed in it is back to normal since 14:25 UTC [E1].\n\n"
    )


async def test_a_justified_rollback_request_is_proposed() -> None:
    row = deploy("checkout", "2026-04-07T14:09:00Z")
    found = await asked("roll back checkout", CHECKOUT_SLOW, deploys=[row])

    assert len(found.asked("core__propose_action")) == 1
    assert "not proposed" not in found.text


async def test_the_asked_product_is_not_repeated_in_every_line() -> None:
    found = await asked("why is checkout slow?", CHECKOUT_SLOW)

    assert "You asked about" not in found.text
    assert bullets(found)[0].startswith("- latency rose")


async def test_a_product_without_metrics_is_reported_first() -> None:
    found = await asked("why is web slow?", CHECKOUT_SLOW, within={"checkout": "traffic"})

    assert found.text.startswith(
        "You asked about web: no metrics of its own were found [E1]. The clearest anomaly is in checkout [E1].\n\n"
    )
    assert all("checkout" in line for line in bullets(found)[:2])
    assert "Not looked at: web" not in found.text


async def test_other_products_health_is_not_reported_as_the_asked_ones() -> None:
    found = await asked("is web fine?", within={"checkout": ALL})

    assert found.text.startswith("You asked about web: no metrics of its own were found [E1].\n\n")
    assert "Nothing is wrong" not in found.text
    assert "- checked metrics (none of web) [E1]" in found.text


@pytest.mark.parametrize("question", ["why is it slow?", "what is wrong?"])
async def test_a_general_question_is_answered_with_all_product_names(question: str) -> None:
    found = await asked(question, [moved("web", "latency", ONSET)])

    assert "begin in web" in found.text
    assert bullets(found)[0].startswith("- web: latency rose")
    assert "Assumed: you mean checkout and web." in found.text


async def test_a_general_all_clear_names_each_product() -> None:
    found = await asked("what is wrong?")

    assert "with checkout and web, as far as I can see.**" in found.text
    assert f"checked metrics (checkout: {ALL}; web: {ALL})" in found.text


async def test_a_general_question_finds_a_product_beyond_the_first_ones_reach() -> None:
    shifts = [moved("web", "latency", ONSET, score=30.0)]
    small = [moved("checkout", "latency", ONSET, worst=9.0, score=30.0)]
    played = world([*shifts, *small], calls=["checkout > db", "web > db"], within={})
    found = await investigate(played, "what is wrong?", PRODUCTS)
    named = await investigate(played, "why is checkout slow?", PRODUCTS)

    suspects = [one["product"] for one in found.asked("core__report_findings")[0]["suspects"]]
    assert suspects == ["checkout", "web"]
    assert "web" not in named.text


async def test_logs_without_a_product_are_of_the_first_one_and_say_so() -> None:
    found = await asked("show me the logs", around={"get_logs": {"lines": []}})

    assert "Assumed: you mean checkout, the first product of this channel." in found.text


async def test_a_channel_with_one_product_needs_no_such_notice() -> None:
    found = await asked("what is wrong?", CHECKOUT_SLOW, products=("checkout",))

    assert "Assumed" not in found.text
    assert not any(line.startswith("- checkout") for line in bullets(found))


def young(**more: object) -> Mapping[str, object]:
    return {
        "sweep_metrics": {
            "range": "2026-04-07T14:05:00Z/2026-04-07T14:35:00Z",
            "step_s": 60.0,
            "shifts": [],
            "within": {"checkout": ALL},
            "too_short": {"web": ALL},
            "least_before_s": 600.0,
            "comparable": {
                "web": {"range_from": "2026-04-07T14:21:00Z", "asked_at": "2026-04-07T14:51:00Z"}
            },
            **more,
        }
    }


async def test_a_short_history_is_reported_with_when_to_ask_again() -> None:
    found = await asked("is web slow?", around=young())

    assert found.text.startswith(
        "You asked about web: not enough history to compare its errors, latency, traffic "
        "(that takes 42 minutes of data); ask again at 14:51 UTC, or about the "
        "time since 14:21 UTC [E1].\n\n"
    )
    assert "neither latency nor errors are measured" not in found.text
    assert found.marks == ()


async def test_a_question_with_a_time_gets_another_time_to_ask_about() -> None:
    found = await asked("is web slow since 14:05 UTC?", around=young())

    assert "42 minutes of data); ask about the time since 14:21 UTC [E1].\n\n" in found.text
    assert "ask again" not in found.text


async def test_a_suggested_time_of_another_day_has_its_date() -> None:
    begun = {"web": {"range_from": "2026-04-06T14:21:00Z", "asked_at": "2026-04-07T14:51:00Z"}}
    found = await asked("is web slow since yesterday?", around=young(comparable=begun))

    assert "ask about the time since 2026-04-06 14:21 UTC [E1]" in found.text


async def test_a_past_range_is_not_advised_to_wait() -> None:
    ended = {"web": {"range_from": "2026-04-07T14:33:00Z"}}
    found = await asked("is web slow?", around=young(comparable=ended))

    assert "ask again" not in found.text
    assert "(that takes 42 minutes of data) [E1]." in found.text


async def test_an_unmeasured_signal_is_reported() -> None:
    around = {"sweep_metrics": {"within": {"web": "cpu", "checkout": ALL}}}
    found = await asked("is web slow?", around=around)

    assert "web: neither latency nor errors are measured" in found.text


async def test_a_time_of_another_day_has_its_date() -> None:
    shifts = [moved("web", "latency", "2026-04-06T15:10:00Z")]
    found = await asked("why is web slow since yesterday 15:00?", shifts)

    assert "begin in web since 2026-04-06 15:10 UTC" in found.text
    assert "rose to 1.9 s at 2026-04-06 15:10 UTC" in found.text


async def test_a_named_anomaly_cites_its_metrics_and_not_its_deploy() -> None:
    faint = moved("cart", "latency", "2026-04-07T14:10:00Z", score=4.0, worst=0.5)
    errors = moved("cart", "errors", "2026-04-07T14:10:00Z", score=4.0, worst=0.5)
    found = await investigate(
        world([faint, errors], [deploy("cart", "2026-04-07T14:09:00Z")]), "why is checkout slow?"
    )
    sweep = next(e.number for e in found.evidence if e.tool == "core__sweep_metrics")

    assert f"The clearest anomaly is in cart [E{sweep}]" in found.text
