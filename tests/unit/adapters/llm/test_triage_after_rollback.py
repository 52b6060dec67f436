"""After a rollback the triage judges what came since, and does not propose it again."""

from dataclasses import replace
from datetime import timedelta

from adapters.observe.cursor import UnsealedCodec
from adapters.recorded.simulator.incidents import RecordedIncidents
from tests.fakes.capabilities import FakeClock
from tests.fixtures_triage import Investigation
from tests.unit.adapters.llm.test_triage_recorded import NOW, look_into

QUESTION = "is checkout still slow?"


async def asked_after(
    minutes: float, product: str = "checkout", question: str = QUESTION
) -> Investigation:
    """So long after the product that had been released last went back."""
    clock = FakeClock(NOW)
    incidents = RecordedIncidents(clock, UnsealedCodec())
    incidents.look("bad-deploy")
    version, before = incidents.running()[product]
    incidents.rolled_back(product, before, version)
    # Someone asks now and then, so the incident does not begin again.
    clock.advance(minutes * 30)
    incidents.look("bad-deploy")
    clock.advance(minutes * 30)
    return await look_into("incident-checkout", question, incidents=incidents, clock=clock)


async def test_a_rolled_back_and_calm_product_is_healthy() -> None:
    found = await asked_after(5)

    (stated,) = found.asked("core__report_findings")
    assert (stated["verdict"], stated["suspects"]) == ("healthy", [])
    assert "with checkout since v2.4.0 was rolled back to v2.3.7 at 14:35 UTC" in found.text
    assert found.asked("core__propose_action") == []
    assert found.marks == ()


async def test_errors_that_stopped_long_after_a_rollback_are_not_trouble() -> None:
    found = await asked_after(40)

    (stated,) = found.asked("core__report_findings")
    assert (stated["verdict"], stated["suspects"]) == ("healthy", [])
    assert "**Nothing is wrong with checkout, as far as I can see.**" in found.text
    assert found.asked("core__propose_action") == []
    assert found.marks == ()


async def test_an_all_clear_names_the_rollback_of_another_product() -> None:
    found = await asked_after(5, question="is gateway slow?")

    assert "with gateway since checkout v2.4.0 was rolled back to v2.3.7" in found.text


async def test_right_after_a_rollback_it_is_too_early_to_judge() -> None:
    found = await asked_after(1)

    assert "the deploy of checkout v2.4.0 at 14:10 UTC. v2.4.0 was rolled back" in found.text
    assert "too early to say whether it helped" in found.text
    assert found.asked("core__propose_action") == []
    assert found.marks == ()


async def test_a_rollback_of_another_product_does_not_hide_the_cause() -> None:
    found = await asked_after(6, "recommendations")

    assert found.text.startswith("**Most likely cause: the deploy of checkout v2.4.0")
    (proposed,) = found.asked("core__propose_action")
    assert proposed["params"] == {"version": "v2.3.7"}


async def test_ongoing_trouble_after_a_rollback_is_not_an_all_clear() -> None:
    clock = FakeClock(NOW)
    incidents = RecordedIncidents(clock, UnsealedCodec())
    recorded = incidents.look("bad-deploy")
    sick = recorded.dataset.scenario.fault
    incidents.rolled_back("checkout", "v2.3.7", "v2.4.0")
    still_sick = replace(incidents.scenarios["bad-deploy"], fault=sick)
    recorded.dataset.play(still_sick, recorded.dataset.anchor)
    clock.advance(timedelta(minutes=6).total_seconds())

    found = await look_into("incident-checkout", QUESTION, incidents=incidents, clock=clock)

    assert found.text.startswith("**Most likely cause: the deploy of checkout v2.4.0")
    assert "the problem has not ended" in found.text
    assert found.asked("core__propose_action") == []
