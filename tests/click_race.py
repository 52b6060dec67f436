"""Twenty presses on one card at once, over two replicas of one database: real Bolt, real stores.

The engine is reduced to its promise: one key is one decision, on any replica.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import sqlalchemy as sa
from pydantic import JsonValue

from bot.actions.catalog import ActionRule
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.ids import ChannelId, MessageTs, Person, Place, ProposalId, TeamId, UserId
from bot.domain.proposal import LIFETIME, Proposal, ProposalState, digest
from bot.ports.proposals import Decision
from bot.slack.ingress.clicks import Click, remember
from bot.slack.listeners.bolt_app import create_bolt
from bot.slack.listeners.ports import IngressSettings
from bot.store import tables
from bot.store.audit import StoredAudit
from bot.store.database import Database
from bot.store.proposals import StoredProposals
from tests.fakes.card_wall import CardWall, FlakyWall
from tests.fakes.control_plane import FakeControlPlane
from tests.fakes.journal import MemoryJournal
from tests.fakes.role_table import RoleTable
from tests.fixtures_actions import ROLLBACK, World
from tests.fixtures_stores import LapsingStoredCards
from tests.held_connection import reading
from tests.slack_ingress import IDENTITY, Ingress, Payload, deliver, pressed, proposal, submitted

PRESSES = 20
PEOPLE = ("U1", "U2", "U3", "U4")
CARD_TS = MessageTs("1700000000.000000")  # the first one on a wall
CREATED = AuditEvent(AuditKind.PROPOSAL_CREATED, "U1", {})
# Slack's three seconds are not what is tried here, and twenty at once on a busy machine take longer.
SETTINGS = IngressSettings(IDENTITY, handling_timeout_s=30.0)


@dataclass(frozen=True, slots=True)
class Race:
    """What one round came to."""

    state: ProposalState
    effects: int
    approvals: int
    confirmed_by: int  # different people
    decided: int  # rows of the audit log that say who won
    card_is_true: bool
    no_edit_was_idle: bool


@dataclass
class OnceByKey:
    """`Workflows` of both replicas."""

    group: asyncio.TaskGroup
    started: set[str] = field(default_factory=set)

    def of(self, world: World) -> "Replica":
        """One replica's side of it."""
        return Replica(self, world)


@dataclass
class Replica:
    """Carries out what it heard of first."""

    engine: OnceByKey
    world: World

    async def start_turn(self, ask: object) -> None:
        raise NotImplementedError

    async def start_decision(self, proposal_id: ProposalId, decision: Decision) -> None:
        if decision.key in self.engine.started:
            return
        self.engine.started.add(decision.key)
        run = self.world.decide().run(proposal_id, decision, MemoryJournal())
        self.engine.group.create_task(run)


def presses(row: ProposalId, ts: MessageTs, seed: int, rejecting: int) -> Sequence[Payload]:
    """Confirms of four people, many of them redelivered, and so many Rejects, shuffled."""
    place = Place(TeamId("T1"), ChannelId("C1"), MessageTs("100.1"))
    opened = Click(Person(TeamId("T1"), UserId("U1")), place, ts, "proposal:reject", "300.3", row)
    rejects = [submitted(remember(opened), "no", user) for user in PEOPLE[:rejecting]]
    confirms = [_confirm(row, ts, PEOPLE[n % 4], n // 8) for n in range(PRESSES - len(rejects))]
    payloads = [*confirms, *rejects]
    random.Random(seed).shuffle(payloads)
    return payloads


def _confirm(row: ProposalId, ts: MessageTs, user: str, number: int) -> Payload:
    container: JsonValue = {
        "type": "message",
        "message_ts": ts,
        "channel_id": "C1",
        "thread_ts": "100.1",
    }
    press = {"type": "button", "action_id": "proposal:confirm", "block_id": "b", "value": row}
    return pressed(
        "proposal:confirm",
        row,
        user={"id": user, "team_id": "T1"},
        container=container,
        message={"ts": ts, "thread_ts": "100.1"},
        actions=[{**press, "action_ts": f"300.{number}"}],
    )


async def stored_row(
    database: Database, number: int, approvals: int = 1, params: str = "{}"
) -> Proposal:
    """A pending proposal with a card."""
    now = datetime.now(UTC)
    pending = proposal(approvals=approvals)
    row = replace(
        pending,
        id=ProposalId(f"p-{number}"),
        params=params,
        digest=digest(pending.action, pending.product, params),
        created_at=now,
        expires_at=now + LIFETIME,
        card_ts=CARD_TS,
    )
    created = replace(CREATED, key=f"{row.id}:created", body={"proposal": row.id})
    return await StoredProposals(database).create(row, created)


def of_database(
    database: Database,
    rules: tuple[ActionRule, ...],
    control: FakeControlPlane,
    wall: CardWall | None = None,
) -> World:
    world = World(rules=rules, wall=wall or CardWall(), control=control)
    world.store = StoredProposals(database)  # type: ignore[assignment]
    world.cards = LapsingStoredCards(database)
    world.audit = StoredAudit(database)  # type: ignore[assignment]
    return world


async def race(databases: Sequence[Database], number: int, *, rejecting: int = 3) -> Race:
    """One round, in which so many people reject; odd ones want two to confirm."""
    approvals = 1 + number % 2
    wall, control = FlakyWall(seed=number), FakeControlPlane()
    row = await stored_row(databases[0], number, approvals)
    rules = (replace(ROLLBACK, approvals=approvals),)
    async with asyncio.TaskGroup() as group:
        engine = OnceByKey(group)
        replicas = [_ingress(each, rules, wall, control, engine) for each in databases]
        apps = [create_bolt(SETTINGS, each.ports, each.background) for each in replicas]
        for n, payload in enumerate(presses(row.id, CARD_TS, number, rejecting)):
            group.create_task(deliver(apps[n % len(apps)], payload))
    for each in replicas:
        await each.background.drain(30.0)
    wall.is_flaky = False
    world = of_database(databases[0], rules, control, wall)
    await world.quiet()
    return await _outcome(databases[0], row.id, control, wall)


def _ingress(
    database: Database,
    rules: tuple[ActionRule, ...],
    wall: CardWall,
    control: FakeControlPlane,
    engine: OnceByKey,
) -> Ingress:
    world = of_database(database, rules, control, wall)
    ingress = Ingress(SETTINGS)
    ingress.roles = RoleTable(responder=set(PEOPLE))
    ingress.ports = replace(
        ingress.ports,
        proposals=world.store,
        audit=world.audit,
        roles=ingress.roles,
        workflows=engine.of(world),
    )
    return ingress


async def _outcome(
    database: Database, row: ProposalId, control: FakeControlPlane, wall: FlakyWall
) -> Race:
    after = await StoredProposals(database).get(row)
    assert after is not None
    kinds = await _kinds(database, row)
    voters = {vote.by for vote in after.votes} | {after.decided_by}
    return Race(
        after.state,
        len(control.posts),
        after.approvals,
        len(voters) if after.state is not ProposalState.REJECTED else 0,
        kinds[AuditKind.PROPOSAL_CONFIRMED] + kinds[AuditKind.PROPOSAL_REJECTED],
        replace(wall.shown(row), card_ts=None) == replace(after, card_ts=None),
        len(wall.cards[row]) - len({_look(card) for card in wall.cards[row]}) <= wall.unanswered,
    )


def _look(card: Proposal) -> tuple[object, ...]:
    return (card.state, card.votes, card.outcome)


async def _kinds(database: Database, row: ProposalId) -> Counter[str]:
    audit = tables.audit
    async with reading(database) as connection:
        found = await connection.scalars(
            sa.select(audit.c.kind).where(audit.c.key.startswith(f"{row}:", autoescape=True))
        )
        return Counter(found)


def holds(found: Race) -> bool:
    """What a race may come to: one decision, an effect where enough confirmed, a true card."""
    if not (found.card_is_true and found.no_edit_was_idle):
        return False
    if found.state is ProposalState.REJECTED:
        return (found.effects, found.decided) == (0, 1)
    enough = found.confirmed_by >= found.approvals
    return (
        found.state is ProposalState.SUCCEEDED
        and (found.effects, found.decided) == (1, 1)
        and enough
    )
