"""The digest of a thread: which words ask for it, and that nobody's words become more than a quote."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.chat.recap import asks_for_recap
from bot.chat.recap_text import LINES, ChannelPart, channel_digest, inert, thread_digest
from bot.domain.ids import ChannelId, MessageTs, Place, TeamId
from bot.domain.thread import Said, Speaker
from bot.slack.text.links import LinkPolicy
from bot.slack.text.markdown import lines
from tests.fixtures_slack import safe_markdown
from tests.injections import INJECTIONS

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
def test_these_words_ask_for_it(text: str) -> None:
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


def test_a_question_is_open_until_somebody_else_writes() -> None:
    open_ = thread_digest(part(said("is it the db?"), said("hm", 1)), "")
    closed = thread_digest(part(said("is it the db?"), said("no", 1, "ben")), "")
    to_bot = thread_digest(part(said("is it the db?", to_bot=True)), "")

    assert "anna asked: “is it the db?” (nobody else wrote since)" in open_
    assert "asked:" not in closed
    assert "asked:" not in to_bot


def test_what_could_not_be_read_is_said_before_anything_else() -> None:
    digest = thread_digest(part(missing="only the first 15 were read"), "")
    assert digest.splitlines()[2] == "⚠ Not all: only the first 15 were read."
    assert "- nothing that I can see" in digest


def test_a_long_thread_keeps_its_beginning_and_its_end() -> None:
    digest = thread_digest(part(*(said(f"line {n}", n) for n in range(200))), "")
    assert "“line 0”" in digest
    assert "“line 199”" in digest
    assert f"… {200 - LINES} more" in digest
    assert digest.count("anna: “line") == LINES


def test_a_channel_without_threads_says_so() -> None:
    assert "Nobody asked me anything" in channel_digest([], 24)


@pytest.mark.parametrize("hostile", INJECTIONS.values())
def test_an_injection_stays_a_quote(hostile: str) -> None:
    judged(hostile)


@given(st.text(max_size=400))
def test_no_words_make_a_heading_a_list_a_link_or_a_mention(hostile: str) -> None:
    judged(hostile)


def judged(hostile: str) -> None:
    """What is sent of a digest with those words and that name, line by line."""
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
