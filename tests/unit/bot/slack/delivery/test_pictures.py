"""A workspace's refusal of charts, and the replacement sent."""

import pytest

from bot.slack.api.web_api import Refused
from bot.slack.delivery.outbox import Pictures
from bot.slack.text.blocks import Block

TEXT: Block = {"type": "markdown"}
CHART: Block = {"type": "data_visualization"}
SENT: tuple[Block, ...] = (TEXT, CHART)


def said(what: str) -> Refused:
    return Refused("chat.update", "invalid_blocks", [f"[ERROR] {what}"])


@pytest.mark.parametrize(
    ("refused", "again", "from_now_on"),
    [
        (said("unsupported type: data_visualization"), (TEXT,), (TEXT,)),
        (Refused("chat.update", "invalid_blocks"), (TEXT,), (TEXT,)),
        (said("must be less than 21 characters"), (TEXT,), SENT),
        (Refused("chat.update", "msg_blocks_too_long"), (TEXT,), SENT),
        (Refused("chat.update", "cant_update_message"), None, SENT),
    ],
)
def test_a_refused_picture_is_omitted_now_and_later(
    refused: Refused, again: tuple[Block, ...] | None, from_now_on: tuple[Block, ...]
) -> None:
    pictures = Pictures()

    assert pictures.without(SENT, refused) == again
    assert pictures.shown(SENT) == from_now_on


def test_a_refusal_without_a_picture_is_not_about_pictures() -> None:
    pictures = Pictures()

    assert pictures.without((TEXT,), Refused("chat.update", "invalid_blocks")) is None
    assert pictures.has_charts
