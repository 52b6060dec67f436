"""Long answers in several messages: nothing lost, every message within its limit."""

import re

from hypothesis import given
from hypothesis import strategies as st

from bot.slack.text.limits import PART_BYTES
from bot.slack.text.links import NO_LINKS
from bot.slack.text.mrkdwn import clean
from bot.slack.text.split import split

TEXTS = st.one_of(
    st.text(st.characters(), max_size=2_000),
    st.lists(
        st.sampled_from(["word ", "\n", "\n\n", "```\n", "~~~py\n", "&<>" * 30, "é🚒" * 40, "https://e.example/x "]),
        max_size=120,
    ).map("".join),
)  # fmt: skip


@given(TEXTS, st.integers(64, 400))
def test_no_text_is_lost_and_every_piece_fits(text: str, max_bytes: int) -> None:
    pieces = split(text, NO_LINKS, max_bytes)

    assert "".join(piece.source for piece in pieces) == clean(text)
    assert max((len(piece.safe.encode()) for piece in pieces), default=0) <= max_bytes


@given(TEXTS, st.integers(64, 400))
def test_every_fence_is_closed_where_it_is_cut(text: str, max_bytes: int) -> None:
    fences = [
        len(re.findall(r"^```", p.safe, re.MULTILINE)) for p in split(text, NO_LINKS, max_bytes)
    ]

    assert [count % 2 for count in fences] == [0] * len(fences)


def test_a_cut_fence_is_opened_again_with_its_language() -> None:
    text = "```bash\n" + "\n".join(f"echo {n}" for n in range(60)) + "\n```\nend"

    first, second, *_ = split(text, NO_LINKS, 300)

    assert first.safe.endswith("\n```")
    assert second.safe.startswith("```bash\necho ")


def test_a_paragraph_is_the_preferred_place_to_cut() -> None:
    paragraphs = ["one " * 40, "two " * 40, "three " * 40]

    pieces = split("\n\n".join(paragraphs) + "\n", NO_LINKS, 420)

    assert [piece.source[:3] for piece in pieces] == ["one", "thr"]


def test_a_long_line_is_cut_between_words() -> None:
    pieces = split("word " * 200, NO_LINKS, 200)

    assert {word for piece in pieces for word in piece.safe.split()} == {"word"}


def test_a_long_link_stays_inert_in_every_piece() -> None:
    pieces = split("https://evil.example/" + "a" * 2_000, NO_LINKS, 300)

    assert pieces[0].safe.startswith("`https://")
    assert pieces[0].safe.endswith("`")


def test_a_mebibyte_is_split_quickly() -> None:
    text = "x" * (1 << 20)

    assert len(split(text, NO_LINKS)) >= len(text) // PART_BYTES
