"""A running bot and its surroundings, as people, an operator and a model see them.

Started by `tests.fixtures_service`.
"""

import asyncio
import io
import json
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.app.start import Service
from bot.demo.workspace import interactions
from bot.demo.workspace.delivery import Ack
from bot.demo.workspace.json_access import JsonObject
from bot.demo.workspace.people import User
from bot.demo.workspace.seeds import CHECKOUT, RESPONDER
from bot.demo.workspace.state import Workspace
from bot.demo.workspace.timeline import Message
from bot.settings.model import Settings
from bot.slack.views.modals import REFUSED
from bot.slack.views.sources import OPEN_ACTION, OVERVIEW_ACTION
from tests.fakes.control_plane_server import ControlPlaneServer
from tests.fakes.model_server import ModelServer, Recorded, Round
from tests.fixtures_workspace import refused

CONFIRM, REJECT, STOP = "proposal:confirm", "proposal:reject", "turn:stop"
EDIT = "proposal:edit"
WAIT_S = 20.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A message of a person that the bot has to answer. `thread` is empty in a direct message."""

    channel: str
    ts: str
    thread: str

    def turn_in(self, workspace: Workspace) -> str:
        return f"turn:{workspace.app.team_id}:{self.channel}:{self.ts}"


@dataclass(slots=True)
class Stage:
    """Everything that runs, and what people do and see."""

    workspace: Workspace
    models: ModelServer
    plane: ControlPlaneServer
    service: Service
    settings: Settings
    folder: Path
    log: io.StringIO
    stop_service: Callable[[], Awaitable[None]]

    async def reload(self, **sections: object) -> bool:
        """Edit those tables of kortex.toml and reload; whether they are in force."""
        tree = {name: getattr(self.settings, name) for name in Settings.model_fields} | sections
        self.settings = Settings.model_validate(tree)
        return await self.service.reload.take(self.settings)

    def newcomer(self, channel: str = CHECKOUT, name: str = "") -> str:
        """One more colleague: a person may ask so often a minute, and tests ask oftener."""
        roster = self.workspace.roster
        user = f"U0NEWCOM{len(roster.users):03}"
        roster.users[user] = User(
            user, name or user.lower(), name or user, self.workspace.app.team_id
        )
        roster.set_members(channel, roster.channel(channel).members | {user})
        return user

    async def ask(
        self, text: str, user: str = RESPONDER, channel: str = CHECKOUT, thread: str = ""
    ) -> Asked:
        """Say it; nothing is waited for."""
        ts = await self.workspace.say(user, channel, text, thread or None)
        return Asked(channel, ts, thread or ("" if channel.startswith("D") else ts))

    async def answered(
        self, text: str, user: str = RESPONDER, channel: str = CHECKOUT, thread: str = ""
    ) -> str:
        """Ask, wait for the finished answer, and return all that it shows."""
        return await self.answer(await self.ask(text, user, channel, thread))

    async def answer(self, asked: Asked) -> str:
        """All that the finished answer shows."""
        return await self.workspace.wait_for(lambda: self.finished(asked), WAIT_S)

    def finished(self, asked: Asked) -> str:
        """All that the answer shows once its Stop button is gone, else ""."""
        parts = self.parts(asked)
        if not parts or any(STOP in part.action_ids for part in parts):
            return ""
        return "\n".join(shown(part) for part in parts)

    def parts(self, asked: Asked) -> list[Message]:
        """The messages of an answer as they are now."""
        turn = asked.turn_in(self.workspace)
        return [
            message
            for message in self.workspace.messages(asked.channel)
            if _mark(message, "kortex_answer").get("turn") == turn
        ]

    async def live(self, asked: Asked, words: str) -> Message:
        """The answer while it is written, once it shows these words."""
        return await self.workspace.wait_for(
            lambda: next((p for p in self.parts(asked) if words in shown(p)), None), WAIT_S
        )

    def cards(self, asked: Asked) -> list[Message]:
        """The proposals in a thread."""
        thread = self.workspace.messages(asked.channel)
        return [
            m for m in thread if _mark(m, "kortex_card") and (m.thread_ts or "") == asked.thread
        ]

    async def card(self, asked: Asked, words: str = "") -> Message:
        """The newest card of the thread, once it shows these words."""
        return await self.workspace.wait_for(
            lambda: next((c for c in self.cards(asked)[::-1] if words in shown(c)), None), WAIT_S
        )

    async def press(self, user: str, message: Message, action: str, *, stale: bool = False) -> Ack:
        """Press a button of a message."""
        return await self.workspace.click(
            user, message.ts, action, channel=message.channel, stale=stale
        )

    async def list_results(self, user: str, message: Message) -> JsonObject:
        await self.press(user, message, OVERVIEW_ACTION)
        (listed,) = await self.workspace.wait_for(lambda: self.workspace.modals_of(user), WAIT_S)
        return listed

    async def open_result(self, user: str, message: Message, number: int = 1) -> JsonObject:
        """Press *Evidence* below an answer, then Open at one of its results: the modal of that."""
        listed = await self.list_results(user, message)
        await self.workspace.press_in_view(user, str(listed["id"]), f"{OPEN_ACTION}:{number}")
        opened = await self.workspace.wait_for(lambda: self.workspace.modals_of(user)[1:], WAIT_S)
        return opened[-1]

    async def forge(self, user: str, message: Message, action: str, value: str = "") -> Ack:
        """Send a press as no Slack client would let this person: anybody, any value."""
        element = message.action(action) or {}
        payload = interactions.block_actions(
            self.workspace.app,
            self.workspace.roster.users[user],
            self.workspace.roster.channel(message.channel),
            message,
            {**element, "value": value or element.get("value", "")},
            snapshot=message.as_slack(),
            is_ephemeral=False,
            chosen={},
        )
        return await self.workspace.outbox.request("interactive", payload)

    async def private_reply(self, user: str, act: Awaitable[object]) -> str:
        before = len(self.whispers(user))
        await act
        return await self.workspace.wait_for(
            lambda: "".join(self.whispers(user)[before:]) or self._refused(user), WAIT_S
        )

    def _refused(self, user: str) -> str:
        """What the forms in front of a person refuse, which are then closed."""
        said = "".join(refused(self.workspace, user))
        for view in self.workspace.modals_of(user):
            if view["callback_id"] == REFUSED:
                self.workspace.modals.close(str(view["id"]))
        return said

    def whispers(self, user: str) -> list[str]:
        """Every private word to a person."""
        return [shown(message) for message in self.workspace.whispers(user)]

    def said(self, asked: Asked) -> list[str]:
        """Every message of the bot in the thread."""
        bot = self.workspace.app.bot_user_id
        thread = self.workspace.thread(asked.channel, asked.thread)
        return [shown(message) for message in thread if message.user == bot]

    async def note(self, asked: Asked, words: str) -> str:
        """A message of the bot in the thread, once it holds these words."""
        return await self.workspace.wait_for(
            lambda: next((t for t in self.said(asked) if words in t), ""), WAIT_S
        )

    def sent(self) -> str:
        """Every byte that was sent to Slack's Web API, tokens left out."""
        return json.dumps([[c.method, c.arguments] for c in self.workspace.calls])

    def prompted(self) -> str:
        """Every byte of every model request's body."""
        return "\n".join(request.raw.decode() for request in self.models.requests)

    @property
    def effects(self) -> int:
        """POSTs that reached the control plane."""
        return len(self.plane.of("POST"))

    def rows(self) -> str:
        """Every row of every table, the engine's included."""
        with closing(self._database()) as database:
            return "\n".join(database.iterdump())

    async def change(self, sql: str, *values: object) -> None:
        """Change the database while the bot runs: its own transactions continue."""
        await asyncio.to_thread(self.query, sql, *values)

    def query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Read the database behind the bot's back; change it only while the bot is stopped."""
        with closing(self._database()) as database, database:
            return database.execute(sql, values).fetchall()

    async def close_open(self) -> None:
        """What other tests left open is over: the same order is proposed once in a channel."""
        await self.change("UPDATE proposals SET state = 'expired' WHERE state = 'pending'")

    def _database(self) -> sqlite3.Connection:
        return sqlite3.connect(self.folder / "kortex.db", timeout=10)


def shown(message: Message) -> str:
    """All that a message shows: its text and every text of its blocks."""
    return "\n".join([message.text, *_texts(list(message.blocks))])


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("text"), str):
            yield value["text"]
        for member in value.values():
            yield from _texts(member)
    elif isinstance(value, list):
        for member in value:
            yield from _texts(member)


def _mark(message: Message, kind: str) -> Mapping[str, Any]:
    found = message.metadata or {}
    payload = found.get("event_payload") if found.get("event_type") == kind else None
    return payload if isinstance(payload, dict) else {}


def says(*texts: str) -> Callable[[Recorded], Round]:
    """A model that answers everything with these pieces."""
    return lambda _request: Round(text=texts)


def turn_of(request: Recorded) -> list[dict[str, Any]]:
    """The messages of a request (OpenAI's wire) from the last question on."""
    messages: list[dict[str, Any]] = request.body["messages"]
    last = max(i for i, message in enumerate(messages) if message["role"] == "user")
    return messages[last:]


def question_of(request: Recorded) -> str:
    """The question without its context for the model: the time, the state of proposals."""
    return str(turn_of(request)[0]["content"]).split("\n\nNow\n", 1)[0]


def results(request: Recorded) -> list[str]:
    """The tool results of the running turn, in order."""
    return [m["content"] for m in turn_of(request) if m["role"] == "tool"]


def rounds(*script: Round) -> Callable[[Recorded], Round]:
    """A model that goes through these rounds in every turn, the last one again and again."""

    def choose(request: Recorded) -> Round:
        said = sum(message["role"] == "assistant" for message in turn_of(request))
        chosen: Round = script[min(said, len(script) - 1)]
        return chosen

    return choose
