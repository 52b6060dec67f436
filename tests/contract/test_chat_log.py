"""Conversations over HTTP as a chat platform, on both databases: an ordered log that any replica reads."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import orjson
import pytest
import sqlalchemy as sa

from bot.domain.chats import ChatEvent, ChatSession
from bot.domain.ids import API, MessageTs, Person, TeamId, UserId
from bot.domain.proposal import ProposalState
from bot.domain.session import Ask
from bot.domain.turn_events import Notice, RoundReplaced, RoundStarted, TextDelta, ToolProgress
from bot.ports.failures import StorageUnavailable, SurfaceFailed, SurfaceGone
from bot.privacy.redactor import TextRedactor
from bot.store.chat_tables import chat_events
from bot.store.chats import PAGE_CHARS, KeyReused, StoredChats
from bot.store.database import Database
from bot.store.retention import StoredRetention
from bot.web.api.chat import wire
from bot.web.api.chat.notifier import ChatNotifier
from bot.web.api.chat.stream import ChatServices
from bot.web.api.chat.surface import ChatLogSurface
from tests.fixtures_database import new_database
from tests.golden.slack_views import finished, proposal
from tests.held_connection import reading, writing
from tools.records import CallStarted
from tools.redactor import Redacted

ALICE = Person(API, UserId("@person/alice"))
BOB = Person(TeamId("T1"), UserId("UBOB"))
SECRET = "kx-7Hq2LxVd93KwTzPp"  # configured: masked in every place
REDACTOR = TextRedactor([SECRET], b"key")
CALL = ToolProgress(CallStarted("c1", "core__get_logs", {"product": "checkout"}))


@dataclass
class World:
    database: Database
    chats: StoredChats
    surface: Callable[..., ChatLogSurface]
    session: ChatSession

    async def ask(self, text: str = "why?", key: str = "k1") -> Ask:
        ts = await self.chats.ask(
            self.session, key, text, lambda ts: wire.question(ts, text, "alice")
        )
        return Ask(self.session.place, ts, ALICE, Redacted(text))

    async def events(self, reader: Person = ALICE, after: int = 0) -> Sequence[ChatEvent]:
        return await self.chats.after(self.session.id, after, reader, 1_000)


@pytest.fixture(params=["sqlite", "postgresql"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with new_database(request.param, tmp_path) as url:
        database = await Database.open(url)
        chats = StoredChats(database)

        def redact(_session: ChatSession, text: str) -> str:
            return REDACTOR.redact(text)

        def surface(notifier: ChatNotifier | None = None) -> ChatLogSurface:
            notify = (notifier or ChatNotifier()).notify
            return ChatLogSurface(ChatServices(chats, redact, lambda _channel: (), notify), 0.0)

        yield World(database, chats, surface, await chats.open("incident-checkout", ALICE, "alice"))
        await database.close()


def _kinds(events: Sequence[ChatEvent]) -> list[str]:
    return [event.kind.value for event in events]


def _texts(events: Sequence[ChatEvent]) -> list[str]:
    return [orjson.loads(event.data).get("text", "") for event in events]


async def test_an_answer_is_read_in_order_and_ends_once(world: World) -> None:
    ask, surface = await world.ask(), world.surface()
    stream = surface.stream(ask, await surface.open_answer(ask))
    stream.feed(RoundStarted(1, "anthropic", "m"))
    stream.feed(TextDelta("The deploy "))
    stream.feed(CALL)
    await stream.write()
    stream.feed(TextDelta("of checkout "))
    stream.feed(TextDelta("did it. "))
    await stream.write()
    await stream.write()
    await stream.finish(finished())
    again = world.surface().stream(ask, ask.ts)
    await again.finish(finished())

    told = await world.events()
    assert _kinds(told) == ["question", "tool_start", "text", "text", "claims", "done"]
    assert [event.seq for event in told] == [1, 2, 3, 4, 5, 6]
    assert "".join(_texts(told)[2:4]).strip() == "The deploy of checkout did it."
    assert {event.message for event in told} == {ask.ts}
    assert {orjson.loads(event.data)["message_id"] for event in told} == {ask.ts}
    assert _kinds(await world.events(after=4)) == ["claims", "done"]


async def test_a_page_of_long_events_is_short_and_the_next_continues_it(world: World) -> None:
    ask = await world.ask()
    await world.chats.take(world.session.id, ask.ts, "me")
    long = [wire.text(ask.ts, "x" * (PAGE_CHARS // 3)) for _ in range(7)]
    assert await world.chats.tell(world.session.id, ask.ts, "me", long)

    pages, after = [], 0
    while page := await world.events(after=after):
        pages.append([event.seq for event in page])
        after = page[-1].seq

    assert pages == [[1, 2, 3, 4], [5, 6, 7], [8]]


async def test_a_dead_replicas_answer_is_continued_by_its_successor(world: World) -> None:
    ask = await world.ask()
    dead = world.surface().stream(ask, ask.ts)
    for event in (CALL, TextDelta("The old half "), Notice("failing over")):
        dead.feed(event)
    await dead.write()

    successor = world.surface().stream(ask, ask.ts)
    for event in (CALL, Notice("failing over"), TextDelta("The new whole. ")):
        successor.feed(event)
    await successor.write()
    dead.feed(TextDelta("zombie "))
    with pytest.raises(SurfaceGone):
        await dead.write()
    await dead.write()  # and it stays quiet
    with pytest.raises(SurfaceGone):
        await world.surface().stream(replace(ask, ts=MessageTs("1.0")), ask.ts).finish(finished())

    told = await world.events()
    assert _kinds(told) == ["question", "tool_start", "notice", "text", "reset"]
    assert _texts(told)[-1].strip() == "The new whole."


async def test_text_replaced_by_another_model_is_void(world: World) -> None:
    ask = await world.ask()
    stream = world.surface().stream(ask, ask.ts)
    stream.feed(RoundStarted(1, "a", "m"))
    stream.feed(TextDelta("First words. "))
    stream.feed(RoundStarted(2, "a", "m"))
    stream.feed(TextDelta("Wrong words. "))
    await stream.write()
    stream.feed(RoundReplaced(2))
    await stream.write()

    told = await world.events()
    assert _kinds(told) == ["question", "text", "reset"]
    assert _texts(told)[-1].strip() == "First words."


async def test_a_secret_is_masked_at_every_chunk_boundary(world: World) -> None:
    ask = await world.ask()
    stream = world.surface().stream(ask, ask.ts)
    for piece in ("It read ", SECRET[:7], SECRET[7:], " in ", SECRET, " too.\n\n", "And. "):
        stream.feed(TextDelta(piece))
        await stream.write()
    await world.surface().say(ask.place, f"it ended with {SECRET}", "key")

    async with reading(world.database) as connection:
        rows = f"{list(await connection.scalars(sa.select(chat_events.c.data)))}"
    assert "too." in rows
    assert SECRET[:7] not in rows
    assert SECRET[7:] not in rows


async def test_a_question_is_asked_once_for_each_key(world: World) -> None:
    first, again = await world.ask(), await world.ask()
    other = await world.ask("and now?", "k2")

    assert first.ts == again.ts < other.ts
    assert _kinds(await world.events()) == ["question", "question"]
    with pytest.raises(KeyReused):
        await world.ask("something else", "k1")


async def test_ten_writers_lose_nothing_and_number_without_gaps(world: World) -> None:
    surface = world.surface()
    await asyncio.gather(*(surface.say(world.session.place, f"{n}", f"{n}") for n in range(10)))
    await surface.say(world.session.place, "3 once more", "3")

    told = await world.events()
    assert [event.seq for event in told] == list(range(1, 11))
    assert sorted(_texts(told), key=int) == [str(n) for n in range(10)]


async def test_a_card_shows_each_state_once(world: World) -> None:
    surface, ask = world.surface(), await world.ask()
    row = replace(proposal(), place=ask.place, turn_id=ask.turn_id)
    await surface.show_card(row)
    await surface.show_card(row)
    await surface.show_card(replace(row, state=ProposalState.REJECTED))

    states = [orjson.loads(event.data)["state"] for event in (await world.events())[1:]]
    assert states == ["pending", "rejected"]


async def test_a_private_message_is_read_only_by_its_recipient(world: World) -> None:
    await world.surface().whisper(world.session.place, BOB.user, "too late")

    assert _texts(await world.events(BOB)) == ["too late"]
    assert await world.events() == []


async def test_an_unknown_conversation_or_question_is_reported_as_gone(world: World) -> None:
    ask, surface = await world.ask(), world.surface()
    elsewhere = replace(ask, place=replace(ask.place, thread_ts=MessageTs("1.0")))
    unasked = replace(ask, ts=MessageTs("1.0"))

    for gone in (
        surface.open_answer(elsewhere),
        surface.say(elsewhere.place, "x", "k"),
        surface.stream(elsewhere, elsewhere.ts).finish(finished()),
        surface.stream(unasked, unasked.ts).finish(finished()),
    ):
        with pytest.raises(SurfaceGone):
            await gone
    await surface.whisper(elsewhere.place, ALICE.user, "nobody hears it")


async def test_events_are_deleted_with_the_messages(world: World) -> None:
    await world.ask()
    async with writing(world.database) as connection:
        await connection.execute(chat_events.update().values(at=sa.text("at - 90000000000")))
    await world.ask("newer", "k2")

    await StoredRetention(world.database).drop_messages(86_400.0)
    assert _texts(await world.events()) == ["newer"]

    async with writing(world.database) as connection:
        await connection.execute(chat_events.delete())
    await world.surface().say(world.session.place, "later", "key")
    assert [event.seq for event in await world.events()] == [3]
    assert await world.chats.get(world.session.id) == world.session


async def test_an_end_that_cannot_be_stored_is_kept_for_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, failures = await world.ask(), iter([True])
    tell = StoredChats.tell

    async def flaky(*args: object) -> bool:
        done = await tell(*args)  # type: ignore[arg-type]
        if next(failures, False):
            raise StorageUnavailable("the connection went away after the commit")
        return done

    monkeypatch.setattr(StoredChats, "tell", flaky)
    stream = world.surface().stream(ask, ask.ts)
    stream.feed(CALL)
    stream.feed(TextDelta("Half a word. "))
    with pytest.raises(SurfaceFailed):
        await stream.write()
    await stream.finish(finished())

    assert _kinds(await world.events()) == ["question", "tool_start", "text", "claims", "done"]


async def test_answers_grow_while_the_surface_runs(world: World) -> None:
    ask, notifier = await world.ask(), ChatNotifier()
    surface = world.surface(notifier)
    async with surface.running(), asyncio.timeout(5):
        with notifier.subscribe(world.session.id) as more:
            stream = surface.stream(ask, ask.ts)
            stream.feed(TextDelta("The deploy of checkout. "))
            await more.wait()
        await stream.aclose()

    assert _kinds(await world.events()) == ["question", "text"]


async def test_a_pending_write_reports_nothing_after_the_end(world: World) -> None:
    ask = await world.ask()
    stream = world.surface().stream(ask, ask.ts)
    stream.feed(TextDelta("The new version leaks conn"))

    await stream.finish(finished())
    await stream.write()

    assert _kinds(await world.events())[-1] == "done"


async def test_a_writer_that_missed_the_end_reports_nothing_after_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, tell = await world.ask(), StoredChats.tell

    async def lost(*args: object) -> bool:
        await tell(*args)  # type: ignore[arg-type]
        raise StorageUnavailable("the connection went away after the commit")

    stream, successor = (world.surface().stream(ask, ask.ts) for _ in range(2))
    for each in (stream, successor):
        each.feed(TextDelta("The new version leaks conn"))
    monkeypatch.setattr(StoredChats, "tell", lost)
    with pytest.raises(SurfaceFailed):
        await stream.finish(finished())
    monkeypatch.setattr(StoredChats, "tell", tell)
    await stream.write()
    await successor.write()
    await successor.finish(finished())

    assert _kinds(await world.events()) == ["question", "claims", "done"]
