"""Which results an answer names."""

import pytest

from bot.domain.claims import cited


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("slow since 12:09 [E2], not cart [E12][E2]", (2, 12)),
        ("both [E3, E1] and [E1,E7]", (3, 1, 7)),
        ("E4, [4], (E4), [E4 is it], [e4], [Ex], [E12345]", ()),
        ("", ()),
    ],
)
def test_a_text_cites_each_result_once_in_its_order(text: str, numbers: tuple[int, ...]) -> None:
    assert cited(text) == numbers
