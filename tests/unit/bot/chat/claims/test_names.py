"""How names and quotations are compared with results."""

import re

from hypothesis import given
from hypothesis import strategies as st

from bot.chat.claims.names import folded


@given(st.text() | st.text(st.characters(codec="ascii")))
def test_a_folded_text_is_its_lower_case_words_and_numbers(text: str) -> None:
    assert folded(text) == " ".join(re.findall(r"[^\W_]+", text.lower()))
