"""Spending is listed by name, beside the id that stays its key."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

import pytest

from bot.chat.budget_report import GROUPS, BudgetReport
from bot.domain.budget import BudgetLimits
from bot.domain.ids import MessageTs, Place, UserId, place_of, session_at
from bot.ports.ledger import SpentBy, Today
from bot.web.api.naming import Naming
from bot.web.api.spending import budget_model

THREAD = "session:T1:C1:1795438533.034719"


async def kept(places: Collection[Place]) -> Mapping[Place, str]:
    return {place: {"C1": "incident-checkout"}.get(place.channel, "") for place in places}


async def name_of(user: UserId) -> str:
    return {"U1MIRA": "mira", "@person/noor": "noor", "@person/mira": "mira"}.get(user, "somebody")


def link(place: Place, ts: MessageTs) -> str:
    return f"https://acme.test/{place.channel}/{ts}"


def spent(*names: str) -> list[SpentBy]:
    return [SpentBy(name, 5, 1, 0, 10) for name in names]


async def labelled_rows(**by: list[SpentBy]) -> dict[str, list[dict[str, object]]]:
    today = Today(5, 5, 0, datetime(2026, 11, 23, tzinfo=UTC))
    report = BudgetReport(today, BudgetLimits(), {group: by.get(group, []) for group in GROUPS})
    found = await budget_model(report, Naming(kept, name_of, link, lambda: 0.0))
    return found["by"]  # type: ignore[return-value]


async def test_people_have_their_names_or_their_ids_when_unknown() -> None:
    rows = (await labelled_rows(user=spent("U1MIRA", "@person/noor", "U9BEN", "@alert", "root")))[
        "user"
    ]

    assert [(row["name"], row["label"]) for row in rows] == [
        ("U1MIRA", "mira"), ("@person/noor", "noor"), ("U9BEN", "U9BEN"), ("@alert", "an alert"), ("root", "root"),
    ]  # fmt: skip


async def test_two_people_with_one_name_are_distinguished_by_their_ids() -> None:
    rows = (await labelled_rows(user=spent("U1MIRA", "@person/mira")))["user"]

    assert [row["label"] for row in rows] == ["mira (U1MIRA)", "mira (@person/mira)"]


async def test_sessions_are_named_by_channel_time_and_place() -> None:
    rows = (
        await labelled_rows(
            session=spent(THREAD, "session:@api:console:5.1", "session:T1:D0BOB:", "odd")
        )
    )["session"]

    assert [(row["label"], row["thread"], row["thread_url"]) for row in rows] == [
        ("#incident-checkout", "1795438533.034719", "https://acme.test/C1/1795438533.034719"),
        ("#console", "5.1", "https://acme.test/console/5.1"),
        ("direct message", "", "https://acme.test/D0BOB/"),
        ("odd", "", ""),
    ]
    assert rows[0] | {"label": "", "thread_url": "", "thread": ""} == {
        "name": THREAD, "usd_micros": 5, "rounds": 1, "rounds_unpriced": 0, "tokens": 10,
        "label": "", "thread_url": "", "thread": "",
    }  # fmt: skip


async def test_channels_have_their_name_at_the_time_or_their_current_one() -> None:
    names = ("incident-payments", "C1", "@direct")
    rows = (await labelled_rows(channel=spent(*names), session=spent(THREAD)))["channel"]

    assert [row["label"] for row in rows] == [
        "#incident-payments", "#incident-checkout", "direct message",
    ]  # fmt: skip


@pytest.mark.parametrize("session", [THREAD, "session:T1:D1:", "session:@api:console:5.1"])
def test_a_session_shows_its_place(session: str) -> None:
    place = place_of(session)

    assert place is not None
    assert session_at(place) == session


@pytest.mark.parametrize("text", ["", "odd", "session:T1", "session:T1:C1", "turn:T1:C1:1.1"])
def test_an_invalid_session_has_no_place(text: str) -> None:
    assert place_of(text) is None
