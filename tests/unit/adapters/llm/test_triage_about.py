"""Whom an answer is about: said where it is another than was asked about, or where nobody was."""

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


async def test_another_product_than_was_asked_about_is_said_to_be_another() -> None:
    row = deploy("checkout", "2026-04-07T14:09:00Z")
    found = await asked("why is web slow?", CHECKOUT_SLOW, deploys=[row])

    assert "the deploy of checkout v2" in found.text.splitlines()[0]
    assert "You asked about web; what stands out is checkout." in found.text.splitlines()[0]
    assert all("checkout" in line for line in bullets(found))
    assert found.marks == ()


async def test_the_product_that_was_asked_about_is_not_named_in_every_line() -> None:
    found = await asked("why is checkout slow?", CHECKOUT_SLOW)

    assert "You asked about" not in found.text
    assert bullets(found)[0].startswith("- latency rose")


async def test_a_product_without_data_of_its_own_is_said_before_all_else() -> None:
    found = await asked("why is web slow?", CHECKOUT_SLOW, within={"checkout": "traffic"})

    assert found.text.startswith(
        "You asked about web: no metrics were found that are its own. What stands out is checkout.\n\n"
    )
    assert all("checkout" in line for line in bullets(found)[:2])
    assert "Not looked at: web" not in found.text


async def test_without_data_of_its_own_the_calm_of_others_is_not_told_as_its_own() -> None:
    found = await asked("is web fine?", within={"checkout": ALL})

    assert found.text.startswith("You asked about web: no metrics were found that are its own.\n\n")
    assert "Nothing is wrong" not in found.text
    assert "- looked at metrics (none of web) [E1]" in found.text


@pytest.mark.parametrize("question", ["why is it slow?", "what is wrong?"])
async def test_a_question_that_names_nobody_is_answered_about_all_by_name(question: str) -> None:
    found = await asked(question, [moved("web", "latency", ONSET)])

    assert "begin in web" in found.text
    assert bullets(found)[0].startswith("- web: latency rose")
    assert "Assumed: no product is named, so this is about checkout and web." in found.text


async def test_nobody_named_and_all_calm_tells_of_each() -> None:
    found = await asked("what is wrong?")

    assert "with checkout and web.**" in found.text
    assert f"looked at metrics (checkout: {ALL}; web: {ALL})" in found.text


async def test_who_is_beyond_the_first_products_reach_is_found_when_nobody_is_named() -> None:
    shifts = [moved("web", "latency", ONSET, score=30.0)]
    small = [moved("checkout", "latency", ONSET, worst=9.0, score=30.0)]
    played = world([*shifts, *small], calls=["checkout > db", "web > db"], within={})
    found = await investigate(played, "what is wrong?", PRODUCTS)
    named = await investigate(played, "why is checkout slow?", PRODUCTS)

    suspects = [one["product"] for one in found.asked("core__report_findings")[0]["suspects"]]
    assert suspects == ["checkout", "web"]
    assert "web" not in named.text


async def test_logs_of_nobody_are_those_of_the_first_and_that_is_said() -> None:
    found = await asked("show me the logs", around={"get_logs": {"lines": []}})

    assert (
        "Assumed: no product is named, so this is checkout, the first of this channel."
        in found.text
    )


async def test_a_channel_of_one_product_needs_no_such_word() -> None:
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


async def test_what_is_measured_for_too_short_a_time_is_told_with_when_to_ask_again() -> None:
    found = await asked("is web slow?", around=young())

    assert found.text.startswith(
        "You asked about web: its errors, latency, traffic are measured, but not long enough to "
        "compare: that takes 10 minutes of data before; ask again at 14:51 UTC, or about the time "
        "since 14:21 UTC.\n\n"
    )
    assert "neither latency nor errors nor traffic are measured" not in found.text
    assert found.marks == ()


async def test_whoever_named_a_time_is_told_which_time_to_name_instead() -> None:
    found = await asked("is web slow since 14:05 UTC?", around=young())

    assert "10 minutes of data before; ask about the time since 14:21 UTC.\n\n" in found.text
    assert "ask again" not in found.text


async def test_of_a_time_that_is_over_nobody_is_told_to_wait() -> None:
    ended = {"web": {"range_from": "2026-04-07T14:33:00Z"}}
    found = await asked("is web slow?", around=young(comparable=ended))

    assert "ask again" not in found.text
    assert "that takes 10 minutes of data before." in found.text


async def test_what_is_not_measured_is_said_so() -> None:
    around = {"sweep_metrics": {"within": {"web": "cpu", "checkout": ALL}}}
    found = await asked("is web slow?", around=around)

    assert "web: neither latency nor errors nor traffic are measured" in found.text


async def test_a_time_of_another_day_has_its_date() -> None:
    shifts = [moved("web", "latency", "2026-04-06T15:10:00Z")]
    found = await asked("why is web slow since yesterday 15:00?", shifts)

    assert "begin in web since 2026-04-06 15:10 UTC" in found.text
    assert "rose to 1.9 s at 2026-04-06 15:10 UTC" in found.text
