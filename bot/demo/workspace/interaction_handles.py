"""Short-lived rights: trigger ids for modals, and response URLs."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from bot.demo.workspace.errors import SlackRefused

TRIGGER_LIFETIME_S = 3.0  # https://docs.slack.dev/reference/methods/views.open
# https://docs.slack.dev/interactivity/handling-user-interaction ("response_url")
RESPONSE_URL_LIFETIME_S = 30 * 60.0
RESPONSE_URL_USES = 5


@dataclass(frozen=True, slots=True)
class Trigger:
    """Who may be shown a modal, until when."""

    user: str
    made_at: float
    is_spent: bool = False


@dataclass(frozen=True, slots=True)
class ResponseUrl:
    """Where an interaction came from. `message_ts` empty: a slash command."""

    user: str
    channel: str
    message_ts: str
    thread_ts: str | None
    made_at: float
    uses: int = 0


@dataclass(slots=True)
class InteractionHandles:
    now: Callable[[], float] = time.monotonic
    _triggers: dict[str, Trigger] = field(default_factory=dict)
    _response_urls: dict[str, ResponseUrl] = field(default_factory=dict)

    def trigger(self, user: str) -> str:
        trigger_id = (
            f"{secrets.randbelow(10**13)}.{secrets.randbelow(10**11)}.{secrets.token_hex(16)}"
        )
        self._triggers[trigger_id] = Trigger(user, self.now())
        return trigger_id

    def spend_trigger(self, trigger_id: str) -> str:
        """The person to show the modal to. Raises SlackRefused."""
        trigger = self._triggers.get(trigger_id)
        if trigger is None:
            raise SlackRefused("invalid_trigger_id")
        if trigger.is_spent:
            raise SlackRefused("exchanged_trigger_id")
        if self.now() - trigger.made_at > TRIGGER_LIFETIME_S:
            raise SlackRefused("expired_trigger_id")
        self._triggers[trigger_id] = replace(trigger, is_spent=True)
        return trigger.user

    def response_url(
        self, user: str, channel: str, message_ts: str = "", thread_ts: str | None = None
    ) -> str:
        key = secrets.token_urlsafe(18)
        self._response_urls[key] = ResponseUrl(user, channel, message_ts, thread_ts, self.now())
        return f"/actions/{key}"

    def use_response_url(self, key: str) -> ResponseUrl | None:
        """Where to answer; None when unknown, expired or used up."""
        handle = self._response_urls.get(key)
        if handle is None or handle.uses >= RESPONSE_URL_USES:
            return None
        if self.now() - handle.made_at > RESPONSE_URL_LIFETIME_S:
            return None
        self._response_urls[key] = replace(handle, uses=handle.uses + 1)
        return handle
