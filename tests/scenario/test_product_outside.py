"""A question about another channel's product: not answered with one's own, and never read by it."""

import pytest

from bot.demo.workspace.seeds import RESPONDER
from tests.fixtures_service import Start, stage
from tests.stage import says

__all__ = ["stage"]


def channels(reading: str) -> dict[str, object]:
    here = {"match": "incident-*", "products": ["payments"], "reading": reading}
    there = {"match": "secret-shop", "products": ["checkout", "hidden"]}
    return {"llm": {"default_provider": "triage"}, "channels": [here, there]}


@pytest.mark.parametrize("reading", ["products", "strict"])
async def test_another_channels_product_is_named_and_not_read(stage: Start, reading: str) -> None:
    async with stage(says("never asked"), channels(reading)) as running:
        answer = await running.answered("@kortex why is checkout slow?", RESPONDER)

    assert '"checkout" is not one of this channel\'s products (payments)' in answer
    assert '`reading = "all"`' in answer
    assert "v2.4.0" not in answer
    assert "secret-shop" not in answer
    assert "hidden" not in answer


async def test_a_channel_that_may_read_all_products_reads_another_channels_product(
    stage: Start,
) -> None:
    async with stage(says("never asked"), channels("all")) as running:
        asked = await running.ask("@kortex why is checkout slow?", RESPONDER)
        answer = await running.answer(asked)

    assert "but this channel may read it" in answer
    assert "v2.4.0" in answer
    assert running.cards(asked) == []  # reading more widely proposes nothing more
