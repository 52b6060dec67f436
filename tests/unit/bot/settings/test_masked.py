"""A configuration with its secrets masked, as its digest is taken of it."""

import orjson
import pytest

from bot.settings.masked import masked_json
from bot.settings.reading import parse

FILE = """
[slack]
mode = "http"
bot_token = "xoxb-1234"
signing_secret = "{signed}"
[retention]
messages_days = {kept}
[[channels]]
match = "incident-*"
products = ["checkout"]
"""


ACTION = """
[[actions]]
name = "undo"
description = "Undo it"
rollback_params = {{ number = {number} }}
[actions.endpoint]
url = "https://example.com"
"""


def written(signed: str = "s3cret-word", kept: str = "30") -> bytes:
    return masked_json(parse(FILE.format(signed=signed, kept=kept), "kortex.toml", {}))


def test_it_contains_every_table_and_no_secret() -> None:
    told = orjson.loads(written())

    assert told["channels"][0]["match"] == "incident-*"
    assert told["slack"]["bot_token"] == "**********"
    assert "http" in told
    assert b"s3cret-word" not in written()


@pytest.mark.parametrize(
    ("other", "same"), [({"signed": "another-word"}, True), ({"kept": "31"}, False)]
)
def test_it_distinguishes_configurations_by_everything_but_secrets(
    other: dict[str, str], same: bool
) -> None:
    assert (written() == written(**other)) is same
    assert written() == written()


def test_numbers_of_any_size_distinguish_configurations() -> None:
    def with_number(number: int) -> bytes:
        return masked_json(parse(ACTION.format(number=number), "kortex.toml", {}))

    assert str(2**128).encode() in with_number(2**128)
    assert with_number(2**128) != with_number(2**128 + 1)
