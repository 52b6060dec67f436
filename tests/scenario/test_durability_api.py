"""kill -9 of the answering replica, under a reader of the chat API: another replica continues."""

from pathlib import Path

import aiohttp
import pytest
import sqlalchemy as sa

from bot.domain.callers import CallerKind, KnownCaller, caller_id
from bot.store.callers import StoredCallers
from bot.store.tables import turn_steps
from tests.fixtures_api import Api, Told
from tests.scenario.durability.investigation import (
    AFTER_FIRST_TEXT,
    ALL_READ,
    ASK,
    FINAL,
    three_rounds,
)
from tests.scenario.durability.world import world_on

ALICE = KnownCaller(
    caller_id(CallerKind.PERSON, "alice"), CallerKind.PERSON, "alice", frozenset({"responder"})
)


async def test_a_reader_continues_at_another_replica(tmp_path: Path) -> None:
    async with world_on("postgresql", tmp_path) as world, aiohttp.ClientSession() as http:
        three_rounds(world)
        token = (await StoredCallers(world.database).create(ALICE, None, "cli:test")).token
        victim, other = await world.start(), await world.start()
        held = world.hold_round(ASK, 3, at=AFTER_FIRST_TEXT)
        api, told = Api(http, victim.port, token), list[Told]()
        session = await api.open()
        path, key = f"/chat/v1/sessions/{session}/messages", {"Idempotency_Key": "k"}

        async def read_until_it_dies() -> None:
            async with api.stream("POST", path, {"text": ASK}, **key) as events:
                async for event in events:
                    told.append(event)
                    if held.reached.is_set() and event.name == "text":
                        await world.until(all_is_recorded)
                        await world.kill(victim)

        async def all_is_recorded() -> bool:
            step = sa.select(turn_steps.c.n).where(turn_steps.c.name == ALL_READ)
            return bool(await world.rows(step))

        with pytest.raises(aiohttp.ClientError):
            await read_until_it_dies()
        world.open()
        again = Api(http, other.port, token)
        rest = await again.ask(session, ASK, Last_Event_ID=f"{told[-1].id}", **key)

        assert rest[-1].name == "done"
        assert rest[-1].data["text"].endswith(FINAL)
        numbers = [event.id for event in (*told, *rest)]
        assert numbers == sorted(set(numbers))
        ended = [event.data["tool_call_id"] for event in (*told, *rest) if event.name == "tool_end"]
        assert len(ended) == len(set(ended)) == 3
        assert [event.name for event in (*told, *rest)].count("question") == 1
        assert world.rounds == {(ASK, 1): 1, (ASK, 2): 1, (ASK, 3): 2}
        whole = (await again.call("GET", path))[1]
        assert [message["text"] for message in whole["messages"]] == [rest[-1].data["text"]]
