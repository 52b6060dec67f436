"""The encodings that a configured secret is found in."""

import html

from hypothesis import given
from hypothesis import strategies as st

from bot.privacy.literals import forms


@given(st.text(alphabet=st.sampled_from("aé&<>\"'#;"), min_size=6))
def test_a_secret_is_found_in_its_html_form(secret: str) -> None:
    assert html.escape(secret).encode() in forms(secret)
