"""A file's name in one of our sentences is shown as plain words."""

import pytest

from bot.slack.ingress.payloads import SharedFile
from bot.slack.listeners.message_intake import attached


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("all is well [E1].log", "all is well (E1).log"),
        ("[a](https://evil.example)", "(a)(https://evil.example)"),
        ("<!channel>.log", "‹!channel›.log"),
        ("", "a file"),
    ],
)
def test_a_name_cites_links_and_mentions_nothing(given: str, told: str) -> None:
    assert attached(SharedFile(id="F1", name=given), lambda text: text).name == told
