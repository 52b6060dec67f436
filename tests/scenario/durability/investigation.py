"""A turn of three rounds and three queries, and its state after a good end."""

from collections import Counter

import sqlalchemy as sa

from bot.store import ledger_tables
from tests.fakes.model_server import Round
from tests.scenario.durability.world import Asked, World, logs_of

ASK = "why is checkout slow"
FINAL = "The new version leaks connections."
FIRST_READ, ALL_READ = "tool:1:core__get_logs", "tool:2:core__get_logs and 1 more"
AFTER_FIRST_TEXT = 3  # events of the wire: the message and the block begin, a text


def three_rounds(world: World) -> None:
    """The script of ASK."""
    world.scripts[ASK] = [
        Round(text=("Looking at ", "checkout."), calls=(logs_of("checkout"),)),
        Round(text=("Looking at web and cart.",), calls=(logs_of("web"), logs_of("cart"))),
        Round(text=("The new ", "version leaks ", "connections.")),
    ]


async def ended_well(
    world: World,
    asked: Asked,
    *,
    round_again: int = 0,
    queries_again: int = 0,
    calls_cancelled: int = 0,
) -> None:
    """One whole answer; nothing done, paid or written twice but the round and queries named.

    A call that lived to be cancelled is in the audit log beside the one that took its place, where a
    process that ends could still write it: a cancellation waits for that a moment only.
    """
    await world.shows(asked, FINAL)
    await world.settled()
    (answer,) = world.answers(asked)
    assert answer.text.count(FINAL) == answer.text.count("Looking at checkout.") == 1
    assert "turn:stop" not in str(answer.blocks)
    assert world.rounds == Counter({(ASK, 1): 1, (ASK, 2): 1, (ASK, 3): 1}) + Counter(
        {(ASK, round_again): int(round_again > 0)}
    )
    assert world.gates.passed["loki GET query_range before"] == 3 + queries_again
    assert await world.history(asked) == 7
    audit = await world.audit()
    del audit["process.started"], audit["config.reloaded"]
    assert 3 <= audit.pop("tool.call") <= 3 + calls_cancelled
    assert audit == {"turn.started": 1, "model.call": 3, "turn.ended": 1}
    assert len(await world.rows(sa.select(ledger_tables.spending))) == 3
