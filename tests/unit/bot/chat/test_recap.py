"""The digest of a thread: the words that ask for it, and quotes that stay quotes."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.chat.recap import KEPT, NO_TIME, Recaps, asks_for_recap, asks_for_report
from bot.chat.recap_text import LINES, ChannelPart, channel_digest, inert, thread_digest
from bot.chat.stopping import Signal
from bot.domain.dossier import Dossier, DossierTurn
from bot.domain.ids import ChannelId, MessageTs, Place, SessionId, TeamId
from bot.domain.proposal import ProposalState
from bot.domain.session import Ask, Session
from bot.domain.thread import Said, Speaker, ThreadRead
from bot.domain.turn_events import TurnEnd
from bot.ports.failures import StorageUnavailable
from bot.ports.records import RecentThreads
from bot.reports.one_page import one_page
from bot.slack.text.links import LinkPolicy
from bot.slack.text.markdown import lines
from tests.fakes.journal import MemoryJournal
from tests.fakes.redactor import FakeRedactor
from tests.fixtures_slack import safe_markdown
from tests.fixtures_turn import ASK, LATER, turn_bench
from tests.golden.slack_views import proposal
from tests.injections import INJECTIONS
from tools.redactor import Redacted, RedactionFailed

AT = datetime(2026, 11, 22, 14, 2, tzinfo=UTC)
PLACE = Place(TeamId("T1"), ChannelId("C1"), MessageTs("1.1"))
SITE = "https://acme.slack.com"
LINK = f"{SITE}/archives/C1/p1763700000000100?thread_ts=1.1&cid=C1"


def said(text: str, n: int = 0, name: str = "anna", **fields: object) -> Said:
    ts, at = MessageTs(f"{n}.1"), AT + timedelta(minutes=n)
    made = {"ts": ts, "at": at, "speaker": Speaker.PERSON, "user": name, "name": name}
    return Said(**{**made, "text": text, "link": LINK, **fields})  # type: ignore[arg-type]


def part(*messages: Said, missing: str = "") -> ChannelPart:
    return ChannelPart(PLACE, None, messages, missing, {}, {}, AT + timedelta(hours=1))


@pytest.mark.parametrize(
    "text",
    [
        "catch me up", "Catch me up!", "please catch me up", "can you catch us up?",
        "what happened?", "what's happened so far?", "so what happened here", "summary so far",
        "a summary so far please", "give me a summary of this thread", "summarise this thread",
    ],
)  # fmt: skip
def test_the_requests_for_a_digest_are_recognised(text: str) -> None:
    assert asks_for_recap(text)


@pytest.mark.parametrize(
    "text",
    [
        "what happened to checkout?", "what happened at 13:40?", "why is checkout slow?",
        "catch me up on payments", "summary of payments errors", "summarise the logs of web",
        "catch", "",
    ],
)  # fmt: skip
def test_a_question_about_something_is_investigated(text: str) -> None:
    assert not asks_for_recap(text)


def test_a_question_is_open_until_someone_else_writes() -> None:
    open_ = thread_digest(part(said("is it the db?"), said("hm", 1)), "")
    closed = thread_digest(part(said("is it the db?"), said("no", 1, "ben")), "")
    to_bot = thread_digest(part(said("is it the db?", to_bot=True)), "")

    assert "anna asked: “is it the db?” (no reply since)" in open_
    assert "asked:" not in closed
    assert "asked:" not in to_bot


def test_unread_messages_are_reported_first() -> None:
    digest = thread_digest(part(missing="only the first 15 were read"), "")
    assert digest.splitlines()[2] == "⚠ Not all: only the first 15 were read."
    assert "- no messages" in digest


def test_a_long_thread_keeps_its_beginning_and_its_end() -> None:
    digest = thread_digest(part(*(said(f"line {n}", n) for n in range(200))), "")
    assert "“line 0”" in digest
    assert "“line 199”" in digest
    assert f"… {200 - LINES} more" in digest
    assert digest.count("anna: “line") == LINES


@pytest.mark.parametrize(
    "name", ["Kortex", " kortex", "Kor\u200btex", "Ｋortex", "Kortex answered"]
)
def test_no_name_can_imitate_the_bot(name: str) -> None:
    digest = thread_digest(part(said("the rollback is confirmed", name=name)), "")
    assert " (not this bot): “the rollback is confirmed”" in digest


def test_a_channel_without_threads_is_reported() -> None:
    assert "No one asked me a question" in channel_digest([], 24, 0)


def test_a_channel_over_the_limit_says_how_many_threads_it_has() -> None:
    heads = [channel_digest([part(said("slow?"))], 24, total).splitlines()[0] for total in (1, 25)]
    assert heads == [
        "**The threads here in which I was asked, last 24 hours** (times are UTC)",
        "**The threads here in which I was asked, last 24 hours** (1 of 25, those with proposals "
        "first; times are UTC)",
    ]


def test_actions_are_listed_despite_many_later_answers() -> None:
    failed = proposal(ProposalState.FAILED, decided_at=AT)
    turns = [
        DossierTurn(f"turn:{n}", "U1", "why?", "", "answered", AT, AT, f"{n}.1", evidence=())
        for n in (1, 2, 3)
    ]
    answers = [said(f"Answer {n}.", n, speaker=Speaker.ANSWER) for n in (1, 2, 3)]
    shown = [said("slow?"), *answers]
    session = Session(SessionId("s"), PLACE, "s", AT, AT)
    whole = replace(part(*shown), dossier=Dossier(session, turns, [failed], [], []))

    digest = channel_digest([whole], 24, 1)

    assert ": failed" in digest
    assert "Answer 1." not in digest
    assert "Answer 2." in digest
    assert "Answer 3." in digest


@pytest.mark.parametrize("hostile", INJECTIONS.values())
def test_an_injection_stays_a_quote(hostile: str) -> None:
    judged(hostile)


@given(st.text(max_size=400))
def test_no_text_makes_a_heading_a_list_a_link_or_a_mention(hostile: str) -> None:
    judged(hostile)


def judged(hostile: str) -> None:
    quiet = thread_digest(part(said("x", name="y")), "")
    digest = thread_digest(part(said(hostile, name=hostile)), "")
    sent = safe_markdown(digest, LinkPolicy(frozenset(), SITE))

    assert "<" not in sent
    assert sent.count("**") == quiet.count("**")
    assert sent.count("](") == sent.count(f"]({LINK})")
    others = [line for line in sent.split("\n") if not line.startswith(("- ", "**")) and line]
    assert others == []
    assert all(line.after == "" for line in lines(digest, LinkPolicy(frozenset(), SITE)))


@given(st.text(max_size=300), st.integers(2, 60))
def test_an_inert_text_is_one_short_line(text: str, most: int) -> None:
    made = inert(text, most)
    assert len(made) <= most
    assert not set(made) & set("*`[]|~\n")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            "**The pool is full.**\n(⚠ not checked)\n\n- p99 rose",
            "“The pool is full. (⚠ not checked)”",
        ),
        ("x" * 300 + " (⚠ not checked)", "…” (⚠ marked there)"),
        ("It is full.\n\nMore (⚠ not checked)", "“It is full.”"),
        ("**So far in this thread** (3 messages)", "no question has been answered here yet"),
        ("**Draft from the records; nothing was checked again.**", "no question has been answered"),
    ],
)
def test_known_facts_are_no_more_certain_than_the_answer(answer: str, told: str) -> None:
    turn = DossierTurn("turn:1", "U1", "why?", "", "answered", AT, AT, "2.1", evidence=())
    session = Session(SessionId("s"), PLACE, "incident", AT, AT)
    shown = said(answer, 2, speaker=Speaker.ANSWER)
    whole = replace(part(shown), dossier=Dossier(session, [turn], [], [], []))

    known = thread_digest(whole, "").partition("**Known so far**")[2]
    assert told in known.partition("**What is open**")[0]


class Reader:
    """A thread of one message; counts how often it is read, and may never answer."""

    def __init__(self, text: str = "SECRET-abc is it the db?", *, silent: bool = False) -> None:
        self.reads = 0
        self.text = text
        self.silent = silent

    async def read(self, place: Place, before: MessageTs, most: int) -> ThreadRead:
        self.reads += 1
        if self.silent:
            await asyncio.Event().wait()
        return ThreadRead((said(self.text),))

    def link(self, place: Place, ts: MessageTs) -> str:
        return LINK

    async def name(self, place: Place, user: str) -> str:
        return user


class Records:
    """What is on record, or no database."""

    def __init__(self, *, broken: bool = False, dossier: Dossier | None = None) -> None:
        self.broken = broken
        self.dossier = dossier

    async def read(self, session_id: SessionId) -> Dossier | None:
        if self.broken:
            raise StorageUnavailable("gone")
        return self.dossier

    async def recent(self, place: Place, within: timedelta, limit: int) -> RecentThreads:
        return RecentThreads([], 0)


IN_THREAD = replace(LATER, text=Redacted("catch me up"))


async def recap(recaps: Recaps, ask: Ask = IN_THREAD, journal: MemoryJournal | None = None) -> str:
    told = await recaps.answer(ask, (), journal or MemoryJournal(), Signal())
    assert told is not None
    final, kept = told
    assert [m.text for m in kept] == [KEPT]
    assert (final.end, final.provider, final.rounds) == (TurnEnd.ANSWERED, "", 0)
    return final.text


async def test_a_digest_is_redacted_and_read_once_across_resumptions() -> None:
    reader, journal = Reader(), MemoryJournal()
    recaps = Recaps(reader, Records(), FakeRedactor(), one_page)
    first = await recap(recaps, journal=journal)
    again = await recap(recaps, journal=journal.resumed())

    assert first == again
    assert reader.reads == 1
    assert "SECRET" not in first
    assert "[redacted] is it the db?" in first


@pytest.mark.parametrize("before", range(185, 200))
async def test_a_secret_is_masked_before_its_message_is_cut(before: int) -> None:
    told = await recap(
        Recaps(Reader("x" * before + " SECRET-abc"), Records(), FakeRedactor(), one_page)
    )
    assert "SEC" not in told


async def test_without_readable_messages_only_the_report_is_written() -> None:
    turn = DossierTurn("turn:1", "U1", "why?", "It leaks.", "answered", AT, AT, "2.1", evidence=())
    dossier = Dossier(Session(SessionId("s"), PLACE, "s", AT, AT), [turn], [], [], [])
    recaps = Recaps(None, Records(dossier=dossier), FakeRedactor(), one_page)

    assert await recaps.answer(IN_THREAD, (), MemoryJournal(), Signal()) is None
    told = await recap(recaps, replace(LATER, text=Redacted("write the postmortem")))
    assert told.startswith("**Draft from the records; nothing was checked again.**")


async def test_a_question_is_left_for_an_investigation() -> None:
    recaps = Recaps(Reader(), Records(), FakeRedactor(), one_page)
    assert await recaps.answer(LATER, (), MemoryJournal(), Signal()) is None
    first = replace(ASK, text=Redacted("what happened?"))
    assert await recaps.answer(first, (), MemoryJournal(), Signal()) is None


async def test_a_stop_ends_the_reading_at_once_and_names_its_author() -> None:
    stop = Signal()
    stop.set("U7")
    recaps = Recaps(Reader(silent=True), Records(), FakeRedactor(), one_page)
    async with asyncio.timeout(1):
        told = await recaps.answer(IN_THREAD, ("note",), MemoryJournal(), stop)

    assert told is not None
    assert (told[0].end, told[0].stopped_by, told[0].notices) == (TurnEnd.STOPPED, "U7", ("note",))
    assert told[1] == ()


async def test_late_messages_leave_the_stored_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bot.chat.recap.READING_S", 0.01)
    assert NO_TIME in await recap(Recaps(Reader(silent=True), Records(), FakeRedactor(), one_page))


async def test_an_unredactable_or_unreadable_digest_fails() -> None:
    with pytest.raises(RedactionFailed):
        await recap(Recaps(Reader(), Records(), FakeRedactor(fails=True), one_page))
    with pytest.raises(StorageUnavailable):
        await recap(Recaps(Reader(), Records(broken=True), FakeRedactor(), one_page))


async def test_a_failed_digest_ends_the_turn_with_a_message() -> None:
    bench = turn_bench()
    broken = Recaps(Reader(), Records(broken=True), FakeRedactor(), one_page)
    bench.turns.recaps = broken
    final = await bench.answer(IN_THREAD)

    assert final is not None
    assert final.end is TurnEnd.FAILED
    assert bench.surface.finals == [final]


@pytest.mark.parametrize(
    "text",
    ["write the postmortem", "Write a post-mortem please", "draft the incident report", "rca?"],
)
def test_a_request_for_the_incident_in_writing_gets_its_page(text: str) -> None:
    assert asks_for_report(text)


@pytest.mark.parametrize(
    "text", ["who wrote the postmortem?", "postmortem of last week says checkout", "report", ""]
)
def test_a_mention_of_a_report_requests_none(text: str) -> None:
    assert not asks_for_report(text)
