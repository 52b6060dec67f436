"""Threads of a whole bot without Slack, over one model server that speaks every wire.

Import `bots` by name and list it in `__all__`; it serves a module, and its tests share the loop.
"""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from dbos import DBOSPortableJSONSerializer

from bot.app.build import Base, build_base
from bot.app.conversation import Conversation, build_conversation
from bot.app.platforms import Directory
from bot.cli.headless import NamedByUser, NeverStopped, headless_ask
from bot.domain.ids import MessageTs, UserId
from bot.domain.turn_events import TurnFinished
from bot.ports.platform import NamedByPlace
from bot.settings.model import Settings
from tests.fakes.journal import MemoryJournal
from tests.fakes.model_server import Call, ModelServer, Round
from tests.fakes.recording_chat import RecordingChat
from tests.fakes.set_clock import SetClock
from tests.fixtures_database import new_database
from tools.redactor import Redacted

ANSWER = Round(text=("Nothing was found.",))


class TextJournal(MemoryJournal):
    """Keeps what a database of UTF-8 text could keep, as the engine writes it."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[str] = []

    async def step(self, name: str, run: Callable[[], Any], *, with_next: bool = False) -> Any:
        """See `MemoryJournal`."""
        value = await super().step(name, run, with_next=with_next)
        kept = name + DBOSPortableJSONSerializer().serialize(value)
        assert "\x00" not in kept.encode().decode()
        self.kept.append(kept)
        return value


@dataclass
class Thread:
    """One conversation with one provider behind it."""

    bots: "Bots"
    wire: str
    ts: str
    journal_text: list[str] = field(default_factory=list)

    async def ask(self, *answers: Round, over: str = "") -> TurnFinished:
        """A whole turn in which the model answers so, one round after the other."""
        self.bots.answer_with(self.wire, over or self.wire, answers)
        number = next(self.bots.numbers)
        asked = headless_ask(Redacted("why?"), "incident-x", self.ts)
        asked = replace(asked, ts=MessageTs(f"{number}.2"))
        journal = TextJournal()
        final = await self.bots.talk_of(self.wire).turns.answer(asked, journal)
        self.journal_text += journal.kept
        assert final is not None
        return final


class Bots:
    """One bot for each of OpenAI's APIs, over one model server that has tools or has none."""

    def __init__(
        self, server: ModelServer, bases: Mapping[str, Base], clock: SetClock, stack: AsyncExitStack
    ):
        self.server = server
        self.clock = clock
        self.numbers = count(1)
        self._bases = bases
        directory = Directory(_same, NamedByPlace(), NamedByUser({}))
        self._talks = {
            api: build_conversation(base, RecordingChat(), NeverStopped(), directory)
            for api, base in bases.items()
        }

    def thread(self, wire: str) -> Thread:
        """A new one."""
        return Thread(self, wire, f"{next(self.numbers)}.1")

    def talk_of(self, wire: str) -> Conversation:
        """The conversation that speaks that wire."""
        return self._talks[_api(wire)]

    def answer_with(self, own: str, wire: str, answers: tuple[Round, ...]) -> None:
        """The bot that speaks `own` asks that wire alone, which has not failed yet."""
        base = self._bases[_api(own)]
        name = wire.split("-", 1)[0]
        base.rounds.ask_in_order([base.providers[name]])
        base.rounds._circuits._by_model.clear()
        rounds = iter((*answers, ANSWER, ANSWER, ANSWER))
        self.server._script = lambda _: _written(next(rounds), wire)
        self.server._tools = {"test-model": not wire.endswith("-emulated")}
        for provider in (base.providers["ollama"], base.providers["nirmata"]):
            forget(provider)
        self.server.requests.clear()


def forget(provider: Any) -> None:
    """Ask the backend again whether it has tools."""
    provider._tools = None
    getattr(provider, "_server", provider)._has_tools = {}


def _api(wire: str) -> str:
    return "responses" if wire == "openai-responses" else "chat"


def _written(answer: Round, wire: str) -> Round:
    """As the wire carries it: where there are no tools, calls are markers in the text."""
    if not wire.endswith("-emulated"):
        return answer
    markers = [f"<<TOOL name=\"{c.name}\" args='{_text(c)}'>>" for c in answer.calls]
    return replace(answer, text=(*answer.text, *markers), calls=())


def _text(call: Call) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)


async def _same(user: UserId) -> str:
    return user


def settings_for(database: str, url: str, api: str, *, first_look: bool) -> Settings:
    own: Mapping[str, Any] = {"api_key": "k", "base_url": url, "model": "test-model"}
    providers = {
        name: dict(own) for name in ("anthropic", "openai", "ollama", "bedrock", "nirmata")
    }
    providers["openai"]["api"] = api
    providers["ollama"]["num_ctx"] = 131_072
    return Settings.model_validate(
        {
            "database": {"url": database},
            "llm": {
                "default_provider": "openai",
                "providers": providers,
                "max_tool_depth": 32,
                "first_look": first_look,
                "budget": {"daily_usd_limit": 1000},
            },
            "observe": {part: {"kind": "recorded"} for part in ("logs", "metrics", "traces")},
            "channels": [{"match": "incident-*", "products": ["checkout"]}],
        }
    )


@asynccontextmanager
async def opened(kind: str, folder: Path, *, first_look: bool = False) -> AsyncIterator[Bots]:
    """Scripts number their own evidence from 1 where no model looks first."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ModelServer([]))
        url = await stack.enter_async_context(new_database(kind, folder))
        bases = {
            api: await build_base(settings_for(url, server.url, api, first_look=first_look), stack)
            for api in ("chat", "responses")
        }
        clock = SetClock(datetime.now(UTC))
        told = {api: replace(base, clock=clock) for api, base in bases.items()}
        yield Bots(server, told, clock, stack)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def bots(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bots]:
    async with opened("sqlite", tmp_path_factory.mktemp("kortex")) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def bots_on_postgresql(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bots]:
    async with opened("postgresql", tmp_path_factory.mktemp("kortex")) as made:
        yield made
