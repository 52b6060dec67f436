"""The invariants at the end, after any faults: each violation is a finding in words."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.audit.chain import AuditKeys
from bot.domain.proposal import OPEN
from bot.store import tables
from bot.store.audit_reading import StoredAuditReader, verify
from tests.soak.record import Question, Record

# Between a round's record and a request for it again comes at least a look at the database.
CLOCKS_S = 0.05


async def judge(record: Record) -> list[str]:
    """Every finding."""
    found = [*record.findings, *_answers(record), *_cards(record)]
    found += [
        f"order {name}: sent {count} times" for name, count in record.orders.items() if count > 1
    ]
    found += [each async for each in _paid(record)]
    found += [each async for each in _order(record)]
    proposals = await _rows(record, sa.select(tables.proposals.c.id, tables.proposals.c.state))
    record.ends.update(row.state for row in proposals)
    still = {state.value for state in OPEN}
    found += [f"proposal {row.id}: still {row.state}" for row in proposals if row.state in still]
    audit_log = await verify(StoredAuditReader(record.world.database), AuditKeys(), [])
    if audit_log.bad is not None:
        found.append(f"audit: row {audit_log.bad.seq}: {audit_log.bad.reason}")
    return found


def is_answered(record: Record, question: Question) -> bool:
    """Whether its end is shown."""
    return any(question.final in m.text for m in record.world.answers(question.asked))


def _answers(record: Record) -> Iterator[str]:
    for question in record.questions:
        shown = record.world.answers(question.asked)
        said = sum(each.text.count(question.final) for each in shown)
        if said != 1 or len(shown) != 1:
            yield f"{question.name}: answered {said} times in {len(shown)} messages"
        elif any("turn:stop" in str(each.blocks) for each in shown):
            yield f"{question.name}: its answer still has a Stop button"


def _cards(record: Record) -> Iterator[str]:
    for question in record.questions:
        if not question.is_order:
            continue
        cards = record.world.from_bot(question.asked, "kortex_card")
        if len(cards) != 1:
            yield f"{question.name}: {len(cards)} cards"
        elif "proposal:confirm" in cards[0].action_ids:
            yield f"{question.name}: its card can still be pressed"


async def _paid(record: Record) -> Any:
    steps = sa.table(
        "operation_outputs",
        sa.column("workflow_uuid"),
        sa.column("function_name"),
        sa.column("completed_at_epoch_ms"),
        schema="dbos",
    )
    done = await _rows(record, sa.select(steps).where(steps.c.function_name.like("round:%")))
    of_turn = {record.world.turn_id(each.asked): each.name for each in record.questions}
    for row in done:
        name, number = of_turn.get(row.workflow_uuid, ""), int(row.function_name.split(":")[1])
        recorded = (row.completed_at_epoch_ms or 0) / 1000
        again = [at for at in record.rounds.at[name, number] if at > recorded + CLOCKS_S]
        if again:
            late = max(again) - recorded
            yield f"{name}: round {number} was asked for again {late:.2f} s after it was recorded"


async def _order(record: Record) -> Any:
    started = {
        row.id: row.started_at
        for row in await _rows(record, sa.select(tables.turns.c.id, tables.turns.c.started_at))
    }
    threads: defaultdict[str, list[Question]] = defaultdict(list)
    for question in record.questions:
        threads[question.asked.thread].append(question)
    for questions in threads.values():
        for before, after in pairwise(questions):
            # One that Slack had no answer for may come again after the next.
            heard = record.heard.at.get(before.asked.ts)
            first, second = (started.get(record.world.turn_id(q.asked)) for q in (before, after))
            if heard and heard < after.sent and first and second and first > second:
                yield f"{after.name}: began before {before.name}, which was heard before"


async def _rows(record: Record, statement: sa.Select[Any]) -> Sequence[Any]:
    async def work(connection: AsyncConnection) -> Sequence[Any]:
        found: Sequence[Any] = (await connection.execute(statement)).all()
        return found

    return await record.world.database.fetch(work)
