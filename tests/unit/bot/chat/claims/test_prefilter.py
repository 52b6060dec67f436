"""A cheap pre-filter hides no match."""

import re
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from bot.chat.claims.clocks import Clocks, clocks_in, minutes
from bot.chat.claims.lexicon import plain, words_of
from bot.chat.claims.names import names
from bot.chat.claims.quantities import figures, loose_numbers
from bot.chat.claims.sentences import is_suggestion

# In any case a pattern takes these for i, s and k.
ODD = str.maketrans({"i": "\u0131", "I": "\u0130", "s": "\u017f", "k": "\u212a"})
CASES = st.sampled_from([str, str.upper, str.title, lambda text: text.translate(ODD)])
PIECES = st.sampled_from(
    ["14:02", "02:07", "2:07", "24:10", "2026-04-07T14:02:30Z", "2026-04-07T16:02:00+02:00", "2026-04-07 14:02", " ", "-",
     "T", ".5", ":30", "1", "x", "\n", "2026-04-07t14:02z", "19:02:3\u0663"]
)  # fmt: skip
MINUTES = st.sampled_from(["14:02", "02:07", "00:02", "10:07", "16:02", "24:10"])


@given(st.text(alphabet="isk\u0130\u0131\u017f\u212aISK-1 \u00e9"))
def test_plain_text_search_agrees_with_a_case_insensitive_pattern(text: str) -> None:
    for letter in "isk":
        assert bool(re.search(letter, text, re.IGNORECASE)) == (letter in plain(text))
    assert all(word in plain(text) for word in words_of(text))


@given(st.lists(PIECES, max_size=8).map("".join), MINUTES, st.sampled_from([0, 0, 5]))
def test_a_minute_is_found_like_in_a_full_search(text: str, minute: str, margin: int) -> None:
    everything = minutes(text) | clocks_in(text)
    at = int(minute[:2]) * 60 + int(minute[3:])

    found = Clocks(text, lambda: everything).have(minute, margin)

    apart = [abs(int(one[:2]) * 60 + int(one[3:]) - at) for one in everything]
    assert found == any(each <= margin for each in apart)


@given(CASES.filter(lambda case: case is not str.title))
def test_a_name_is_recognised_by_its_boundaries_in_any_script(case: Callable[[str], str]) -> None:
    for place in (
        "the latency of {}",
        "p99 in {}",
        "time is spent in {}",
        "the service {}",
        "deployed by {}",
    ):
        found, _ = names(case(place).format("quux") + " 1", frozenset())
        assert [name.key for name in found] == ["quux"], place


@given(CASES)
def test_a_figure_is_bounded_in_any_script(case: Callable[[str], str]) -> None:
    assert next(figures(case("roughly") + " 100 ms")).half == 0.005
    bounds = {
        word: next(figures(case(word) + " 100 ms")).bound
        for word in ("roughly", "less than", "exceeding")
    }
    assert bounds == {"roughly": 0, "less than": -1, "exceeding": 1}
    assert next(figures(case("usually") + " 100 ms")).usual
    assert not list(figures(case("status") + " 503"))
    assert is_suggestion("All of it " + case("is proposed") + ".")


@given(
    st.lists(st.sampled_from(["1", "23", ",456", ".7", " ms", "ms", "-", ":", "x", " ", "%"])).map(
        "".join
    )
)
def test_loose_numbers_begin_at_a_boundary(text: str) -> None:
    begins = sum(1 for _ in re.finditer(r"(?<![\w.:-])\d", text))
    assert len(list(loose_numbers(text))) <= begins
