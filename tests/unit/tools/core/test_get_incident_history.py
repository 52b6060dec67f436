"""Past incidents as a result: shape, range, and the sessions that are found."""

from dataclasses import replace
from datetime import timedelta

import orjson
import pytest

from tests.fakes.capabilities import NOW, FakeHistory, fake_capabilities
from tests.fakes.tools import Bench, bench
from tools.capabilities import Interval, PastIncident
from tools.core.get_incident_history import GetIncidentHistory
from tools.errors import InvalidArguments
from tools.products import Reading

PAST = PastIncident(
    "pager:1", "checkout slow", NOW - timedelta(days=40), NOW, "checkout", "warn", "Rolled back."
)


def history(**fields: object) -> tuple[Bench, FakeHistory]:
    fake = FakeHistory(**{"incidents": [PAST], **fields})  # type: ignore[arg-type]
    return bench([GetIncidentHistory()], caps=fake_capabilities(incidents=fake)), fake


async def asked(b: Bench, **arguments: object) -> dict[str, object]:
    outcome = await b.run(orjson.dumps(arguments).decode(), "core__get_incident_history")
    found: dict[str, object] = orjson.loads(outcome.content)
    return found


async def test_an_incident_has_the_documented_shape() -> None:
    b, _ = history()
    assert await asked(b, query="slow") == {
        "incidents": [
            {
                "id": "pager:1",
                "title": "checkout slow",
                "product": "checkout",
                "opened_at": "2026-02-26T14:35:00Z",
                "closed_at": "2026-04-07T14:35:00Z",
                "severity": "warn",
                "resolution_summary": "Rolled back.",
            }
        ]
    }


async def test_an_empty_result_is_an_answer() -> None:
    b, _ = history()
    outcome = await b.run('{"query":"zzyzx"}', "core__get_incident_history")
    assert (outcome.record.ok, outcome.summary) == (True, 'no past incidents, "zzyzx"')


async def test_filters_reach_the_store_with_the_askers_channel() -> None:
    b, fake = history()
    await asked(b, query="slow", product="checkout", time_range="last 90d", limit=3)
    (query,) = fake.queries
    assert (query.product, query.limit, query.channel) == ("checkout", 3, "C1")
    assert query.interval == Interval(NOW - timedelta(days=90), NOW)


@pytest.mark.parametrize(
    "arguments",
    [{"query": ""}, {"query": "x", "limit": 26}, {"query": "x", "product": "a b"}, {}],
)
async def test_arguments_outside_the_contract_do_not_reach_the_store(
    arguments: dict[str, object],
) -> None:
    b, fake = history()
    assert (await asked(b, **arguments))["error"] == "validation"
    assert fake.queries == []


async def test_a_refusal_with_a_message_reaches_the_model() -> None:
    b, _ = history(failure=InvalidArguments("query: name words of the incident"))
    assert await asked(b, query="??") == {
        "error": "validation",
        "message": "query: name words of the incident",
    }


@pytest.mark.parametrize(
    ("opened_days_ago", "closed", "where"),
    [(1, False, "ongoing"), (1, True, "incidents"), (30, False, "incidents")],
)
async def test_a_firing_alert_is_not_history(
    opened_days_ago: int, closed: bool, where: str
) -> None:
    alert = PastIncident(
        "alertmanager:1",
        "checkout down",
        NOW - timedelta(days=opened_days_ago),
        NOW if closed else None,
        "checkout",
    )
    b = bench([GetIncidentHistory()], caps=fake_capabilities(incidents=FakeHistory([alert])))
    found = await asked(b, query="checkout")
    assert {name for name, rows in found.items() if rows} == {where}


async def test_an_earlier_answer_is_not_a_past_incident() -> None:
    answer = PastIncident(
        "kortex:s1", "why is it slow?", NOW, NOW, "checkout", "", "The deploy.", is_own_answer=True
    )
    b = bench([GetIncidentHistory()], caps=fake_capabilities(incidents=FakeHistory([PAST, answer])))

    outcome = await b.run('{"query":"slow"}', "core__get_incident_history")

    found = orjson.loads(outcome.content)
    assert [one["id"] for one in found["incidents"]] == ["pager:1"]
    assert found["earlier_answers"] == [
        {
            "id": "kortex:s1",
            "question": "why is it slow?",
            "product": "checkout",
            "asked_at": "2026-04-07T14:35:00Z",
            "answered_at": "2026-04-07T14:35:00Z",
            "answer": "The deploy.",
        }
    ]
    assert outcome.summary == '1 past incident, 1 earlier answer (not confirmed), "slow"'


@pytest.mark.parametrize(
    ("reading", "found"), [(Reading.ALL, 1), (Reading.PRODUCTS, 1), (Reading.STRICT, 0)]
)
async def test_an_incident_without_a_product_is_hidden_where_the_bound_is_strict(
    reading: Reading, found: int
) -> None:
    b, _ = history(incidents=[replace(PAST, product="")])

    outcome = await b.run(
        '{"query":"slow"}',
        "core__get_incident_history",
        products=("checkout",),
        reading=reading,
    )

    assert len(orjson.loads(outcome.content)["incidents"]) == found
