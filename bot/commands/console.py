"""One question on the command line: the conversation without Slack and without durability."""

import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace

from pydantic import JsonValue

from bot.app import Base, build_base, build_conversation
from bot.commands.headless import (
    HeadlessSurface,
    NamedByUser,
    NeverStopped,
    PlainJournal,
    answer_json,
    headless_ask,
)
from bot.domain.channel import rule_for
from bot.domain.ids import Person, UserId
from bot.domain.session import Ask
from bot.ports.platform import NamedByPlace
from bot.settings.model import Settings
from bot.wiring.in_force import Directory
from bot.wiring.observed import World
from tools.redactor import Redacted


async def answer_here(
    settings: Settings,
    question: str,
    channel: str,
    tell: Callable[[str], None],
    world: World | None = None,
    zone: str = "UTC",
) -> dict[str, JsonValue]:
    """Ask as a person in that channel would, and return the JSON of the answer.

    Writes to the configured database as any turn does. `world` stands in for the clock and the
    configured backends; `zone` is the person's time zone, by name. Raises ConfigurationError, StorageUnavailable.
    """
    surface = HeadlessSurface(tell)
    async with AsyncExitStack() as stack:
        base = await build_base(settings, stack, world=world)
        users = {name: role.users for name, role in settings.roles.items()}

        async def there(person: Person) -> str:  # noqa: ARG001 - as the port says
            return zone

        directory = Directory(_same, NamedByPlace(), NamedByUser(users), there)
        conversation = build_conversation(base, surface, NeverStopped(), directory)
        ask = _asked(base, question, channel)
        final = await conversation.turns.answer(ask, PlainJournal())
    assert final is not None  # noqa: S101 - a headless place is never gone
    rule = rule_for(base.in_force.channels, channel)
    return answer_json(final, surface.proposals, rule.products)


def _asked(base: Base, question: str, channel: str) -> Ask:
    """The question redacted, as the placeholders of its own conversation."""
    wordless = headless_ask(Redacted(""), channel, f"{time.time():.6f}")
    with base.placeholders.within(wordless.place.key):
        return replace(wordless, text=base.redactor.redact(question))


async def _same(user: UserId) -> str:
    return user
