"""What went out lately elsewhere in a tenant, in memory, on SQLite and on PostgreSQL."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.ids import (
    ChannelId,
    MessageTs,
    Person,
    Place,
    ProposalId,
    TeamId,
    UserId,
    session_at,
)
from bot.domain.proposal import Proposal, ProposalState
from bot.domain.session import Ask
from bot.ports.proposals import Decision
from bot.store.database import Database
from bot.store.tables import proposals
from tests.fixtures_database import database, database_url, other
from tests.fixtures_stores import Stores, installed_too, stored, stores
from tests.held_connection import writing
from tests.slack_ingress import proposal
from tools.redactor import Redacted

__all__ = ["database", "database_url", "other", "stores"]

S = ProposalState
HOURS_2 = 7200.0
HERE = Place(TeamId("T1"), ChannelId("C1"), MessageTs("1.1"))


def at(team: str, channel: str) -> Place:
    return Place(TeamId(team), ChannelId(channel), MessageTs("9.9"))


async def raised(stores: Stores, name: str, place: Place, product: str = "checkout") -> Proposal:
    """A proposal of its own in a conversation that was asked in just now."""
    now = datetime.now(UTC)
    person = Person(place.team, UserId("U1"))
    ask = Ask(place, MessageTs(name), person, Redacted("why?"), "incident")
    await stores.sessions.begin_turn(ask, "incident", now)
    row = replace(
        proposal(),
        id=ProposalId(name),
        place=place,
        session_id=session_at(place),
        product=product,
        digest=name.encode().hex(),
        created_at=now,
        expires_at=now + timedelta(minutes=10),
    )
    return await stores.proposals.create(row, _event(AuditKind.PROPOSAL_CREATED, row, "created"))


async def sent(stores: Stores, name: str, place: Place, product: str = "checkout") -> Proposal:
    row = await raised(stores, name, place, product)
    decision = Decision(S.CONFIRMED, UserId("U2"), f"click-{name}")
    confirmed = _event(AuditKind.PROPOSAL_CONFIRMED, row, "confirmed")
    await stores.proposals.decide(row.id, decision, confirmed)
    await stores.proposals.begin_dispatch(row.id, _event(AuditKind.DISPATCH_INTENT, row, "intent"))
    return row


async def ended(stores: Stores, row: Proposal, state: ProposalState, outcome: str = "{}") -> None:
    over = _event(AuditKind.DISPATCH_OUTCOME, row, "outcome")
    await stores.proposals.advance(row.id, S.DISPATCHING, state, outcome, over)


def _event(kind: AuditKind, row: Proposal, word: str) -> AuditEvent:
    return AuditEvent(kind, "U2", {"proposal": row.id}, key=f"{row.id}:{word}")


async def found(stores: Stores, *products: str, place: Place = HERE, limit: int = 5) -> list[str]:
    of = products or None
    around = await stores.proposals.around(session_at(place), place, of, HOURS_2, limit)
    return [row.id for row in around.others]


@pytest.mark.parametrize("state", [S.SUCCEEDED, S.FAILED, S.UNKNOWN])
async def test_a_dispatch_in_another_channel_is_found_in_every_state(
    stores: Stores, state: ProposalState
) -> None:
    await sent(stores, "1", at("T1", "C2"))
    await ended(stores, await sent(stores, "2", at("T1", "D3")), state)
    await ended(stores, await sent(stores, "3", at("@api", "incident-checkout")), state)

    assert await found(stores) == ["1", "2", "3"]


async def test_an_undispatched_or_same_channel_proposal_is_not_found(stores: Stores) -> None:
    await sent(stores, "1", HERE)
    await sent(stores, "2", replace(HERE, thread_ts=MessageTs("2.2")))
    await raised(stores, "3", at("T1", "C3"))
    rejected = await raised(stores, "4", at("T1", "C4"))
    await stores.proposals.decide(
        rejected.id,
        Decision(S.REJECTED, UserId("U2"), "no"),
        _event(AuditKind.PROPOSAL_REJECTED, rejected, "rejected"),
    )
    refused = await sent(stores, "5", at("T1", "C5"))
    await ended(stores, refused, S.FAILED, '{"guard":"freeze"}')

    assert await found(stores) == []


async def test_another_api_conversation_of_the_channel_counts_as_elsewhere(stores: Stores) -> None:
    over_http = at("@api", "incident-checkout")
    await sent(stores, "1", over_http)
    another = replace(over_http, thread_ts=MessageTs("2.2"))

    assert await found(stores, place=another) == ["1"]
    assert await found(stores, place=over_http) == []


async def test_only_the_latest_dispatches_of_the_requested_products_are_found(
    stores: Stores,
) -> None:
    for number, product in enumerate(("checkout", "web", "checkout", "checkout")):
        await sent(stores, str(number), at("T1", f"C{number + 2}"), product)

    assert await found(stores, "checkout", "cart") == ["0", "2", "3"]
    assert await found(stores, "checkout", limit=2) == ["2", "3"]
    assert not (await stores.proposals.around(session_at(HERE), HERE, (), HOURS_2, 5)).others
    assert not (await stores.proposals.around(session_at(HERE), HERE, None, -5, 5)).others


async def test_another_tenants_dispatch_is_never_found(
    database: Database,
) -> None:
    await installed_too(database, "T2")
    stores = stored(database)
    await sent(stores, "home", at("T1", "C2"))
    await sent(stores, "http", at("@api", "incident"))
    await sent(stores, "theirs", at("T2", "C2"))

    assert await found(stores) == ["home", "http"]
    assert await found(stores, place=at("@api", "another")) == ["home", "http"]
    assert await found(stores, place=at("T2", "C9")) == ["theirs"]
    assert await found(stores, place=at("T2", "C2")) == []


async def test_an_old_dispatch_is_not_found(database: Database) -> None:
    stores = stored(database)
    await sent(stores, "1", at("T1", "C2"))
    await sent(stores, "2", at("T1", "C3"))
    long_ago = datetime.now(UTC) - timedelta(hours=2, minutes=1)
    async with writing(database) as connection:
        dated = proposals.update().where(proposals.c.id == "1").values(dispatched_at=long_ago)
        await connection.execute(dated)

    assert await found(stores) == ["2"]
