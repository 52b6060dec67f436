"""`kortex check` says of every channel what its products bound, and what they cannot."""

import pytest

from bot.cli.check.tools import check_channels
from bot.settings.model import ChannelSettings, Settings
from tests.fakes.tools import ALL, FakeTool, contract
from tools.products import CANNOT_BE_TOLD, Reading, usual_scope

TOOLS = [
    FakeTool(contract()),
    FakeTool(contract(id="core__pods", products=CANNOT_BE_TOLD)),
    FakeTool(contract(id="mcp__db__rows", products=usual_scope(()))),
]
SAID = {
    Reading.PRODUCTS: "proposals and tools only for checkout; these may read data of other products: pods "
    "(reading = strict denies them)",
    Reading.STRICT: "proposals and tools only for checkout; not offered: pods",
    Reading.ALL: "proposals only for checkout; reading = all: tools read every product",
}


@pytest.mark.parametrize("reading", Reading)
def test_a_channel_with_products_shows_what_they_limit(reading: Reading) -> None:
    channel = ChannelSettings(match="ops", products=("checkout",), reading=reading)
    (found,) = check_channels(Settings(channels=(channel,)), ALL, TOOLS)
    assert (found.part, found.detail) == ("channel ops", SAID[reading])


def test_a_channel_without_products_shows_that_nothing_is_limited() -> None:
    channel = ChannelSettings(match="ops")
    (found,) = check_channels(Settings(channels=(channel,)), ALL, TOOLS)
    assert "cover every product" in found.detail
