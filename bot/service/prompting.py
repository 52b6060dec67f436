"""The clock's jobs that have something to do only where there are rows for it."""

from collections.abc import Awaitable, Callable

from bot.actions.decide import ExpirySweep
from bot.actions.display import CardSweep
from bot.app import Base, Conversation
from bot.chat.delivery import Redelivery
from bot.engine.engine import Engine
from bot.service.watching import watch_sweep
from bot.store import due
from bot.upkeep.jobs import Prompted


def prompted(
    base: Base,
    engine: Engine,
    conversation: Conversation,
    redelivery: Redelivery,
    show_alerts: Callable[[], Awaitable[None]],
    tick_s: float,
) -> Prompted:
    """Every replica looks each tick."""
    stores = base.stores
    return Prompted(
        tick_s,
        due.Due(stores.database).look,
        {
            due.CARDS: CardSweep(stores.cards, conversation.display).run,
            due.EXPIRY: ExpirySweep(stores.proposals, engine).run,
            due.WATCHES: watch_sweep(base, conversation).run,
            due.ALERTS: show_alerts,
            due.DELIVERY: redelivery.run,
            due.THREADS: engine.look_after_threads,
        },
    )
