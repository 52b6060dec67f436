"""Open modals and published home views by person, and the trigger ids that open a modal."""

import hashlib
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import orjson

from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.identity import AppIdentity, opaque
from bot.demo.workspace.json_access import CONSTANTS, JsonObject, text_at

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


@dataclass(slots=True)
class Modals:
    """Views by id with their owners. A person has one stack of modals and one home."""

    app: AppIdentity
    _views: dict[str, JsonObject] = field(default_factory=dict)
    _owners: dict[str, str] = field(default_factory=dict)
    _homes: dict[str, JsonObject] = field(default_factory=dict)

    def open(self, user: str, view: JsonObject) -> JsonObject:
        view_id = opaque("V")
        self._owners[view_id] = user
        return self._store(view_id, view)

    def update(self, view_id: str, view: JsonObject) -> JsonObject:
        """Replace an open one. Raises SlackRefused("not_found")."""
        if view_id not in self._views:
            raise SlackRefused("not_found")
        return self._store(view_id, view)

    def publish(self, user: str, view: JsonObject) -> JsonObject:
        view_id = text_at(self._homes.get(user, {}), "id") or opaque("V")
        self._homes[user] = self._dress(view_id, view)
        return self._homes[user]

    def home(self, user: str) -> JsonObject | None:
        return self._homes.get(user)

    def get(self, view_id: str) -> JsonObject | None:
        return self._views.get(view_id)

    def owner(self, view_id: str) -> str:
        """Who sees that modal; empty when it is closed."""
        return self._owners.get(view_id, "")

    def of(self, user: str) -> Sequence[JsonObject]:
        return tuple(view for key, view in self._views.items() if self._owners.get(key) == user)

    def close(self, view_id: str) -> None:
        self._views.pop(view_id, None)
        self._owners.pop(view_id, None)

    def _store(self, view_id: str, view: JsonObject) -> JsonObject:
        self._views[view_id] = self._dress(view_id, view)
        return self._views[view_id]

    def _dress(self, view_id: str, view: JsonObject) -> JsonObject:
        digest = hashlib.sha256(orjson.dumps(view) + view_id.encode()).hexdigest()
        return {
            **CONSTANTS["view"],
            **view,
            **CONSTANTS["opened_view"],
            "id": view_id,
            "team_id": self.app.team_id,
            "hash": digest[:20],
            "root_view_id": view_id,
            "app_id": self.app.app_id,
            "app_installed_team_id": self.app.team_id,
            "bot_id": self.app.bot_id,
        }
