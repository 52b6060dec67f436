"""Trigger ids: the right to show a person one modal, soon after they pressed something."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from bot.demo.workspace.errors import SlackRefused

TRIGGER_LIFETIME_S = 3.0  # https://docs.slack.dev/reference/methods/views.open


@dataclass(frozen=True, slots=True)
class Trigger:
    """Who may be shown a modal, until when."""

    user: str
    made_at: float
    is_spent: bool = False


@dataclass(slots=True)
class Triggers:
    now: Callable[[], float] = time.monotonic
    _issued: dict[str, Trigger] = field(default_factory=dict)

    def issue(self, user: str) -> str:
        trigger_id = (
            f"{secrets.randbelow(10**13)}.{secrets.randbelow(10**11)}.{secrets.token_hex(16)}"
        )
        self._issued[trigger_id] = Trigger(user, self.now())
        return trigger_id

    def spend(self, trigger_id: str) -> str:
        """The person to show the modal to. Raises SlackRefused."""
        trigger = self._issued.get(trigger_id)
        if trigger is None:
            raise SlackRefused("invalid_trigger_id")
        if trigger.is_spent:
            raise SlackRefused("exchanged_trigger_id")
        if self.now() - trigger.made_at > TRIGGER_LIFETIME_S:
            raise SlackRefused("expired_trigger_id")
        self._issued[trigger_id] = replace(trigger, is_spent=True)
        return trigger.user
