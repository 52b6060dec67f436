"""The local Slack in a process of its own, with people who ask: `slack_process unlimited|real SPEED`.

`SPEED` makes its clock run that many times as fast, for its rate limits.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any

import aiohttp
import orjson

from bot.demo.workspace.app import api_base_url, serving
from bot.demo.workspace.delivery import Ack, Envelope, Transport
from bot.demo.workspace.identity import AppIdentity
from bot.demo.workspace.people import Channel, Roster, User
from bot.demo.workspace.state import ApiCall, Clocks, Setup, Workspace
from tests.benchmarks.child import serve
from tests.benchmarks.transcript import answer, is_whole, marker_of, question
from tests.signed_http import SignedHttp, signed_http
from tests.slack_request_gate import RateLimits, SlackRequestGate

# A person may ask twenty times a minute, a channel may be posted to once a second.
PEOPLE = 400
CHANNELS = 50
THREADS_CHANNEL = "C0BENCH000"


@dataclass
class Seen:
    """What arrived when, by turn. Takes the place of the workspace's log of calls."""

    asked: dict[str, float] = field(default_factory=dict)
    first_text: dict[str, float] = field(default_factory=dict)
    done: dict[str, float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    ended: dict[str, asyncio.Event] = field(default_factory=dict)
    calls: int = 0

    def append(self, call: ApiCall) -> None:
        self.calls += 1
        if call.error:
            self.errors.append(f"{call.method}: {call.error}")
        text = str(call.arguments.get("text", ""))
        marker = marker_of(text.encode()).decode()
        if not marker or call.method not in ("chat.update", "chat.postMessage"):
            return
        self.first_text.setdefault(marker, time.monotonic())
        if is_whole(text) and b"turn:stop" not in orjson.dumps(call.arguments):
            self.done[marker] = time.monotonic()
            if text != answer(int(marker.removeprefix("bench-"))):
                self.wrong.append(text)
            if marker in self.ended:  # the baseline's are asked by no one
                self.ended[marker].set()


@dataclass
class TimedTransport:
    """Seconds from sending an event to its acknowledgement; then to the floor's, in the same load."""

    inner: Transport
    floor: Transport
    people: "People"

    async def send(self, envelope: Envelope, timeout_s: float) -> Ack:
        began = time.perf_counter()
        ack = await self.inner.send(envelope, timeout_s)
        answered = time.perf_counter()
        if not ack.ok:
            self.people.late += 1
            return ack
        self.people.acks.append(answered - began)
        await self.floor.send(envelope, timeout_s)
        self.people.floor_acks.append(time.perf_counter() - answered)
        return ack


def _roster(app: AppIdentity) -> Roster:
    people = [User(f"U0BENCH{n:03}", f"p{n}", f"Person {n}", app.team_id) for n in range(PEOPLE)]
    bot = User(app.bot_user_id, app.bot_name, "Kortex", app.team_id, is_bot=True, bot_id=app.bot_id)
    everyone = frozenset(person.id for person in [*people, bot])
    channels = [Channel(f"C0BENCH{n:03}", f"incident-{n}", everyone) for n in range(CHANNELS)]
    return Roster.of([*people, bot], channels)


@dataclass
class People:
    """They ask in threads of their own, or in one that has a name, and wait for the whole answer."""

    workspace: Workspace
    request_gate: SlackRequestGate
    seen: Seen
    acks: list[float] = field(default_factory=list)
    floor_acks: list[float] = field(default_factory=list)
    late: int = 0  # deliveries without an acknowledgement in time; Slack delivers again
    threads: dict[str, str] = field(default_factory=dict)  # the first message of those with a name
    # Of all questions: each is new.
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    async def load(
        self,
        streams: int,
        turns: int,
        stagger_s: float,
        timeout_s: float,
        channels: int = CHANNELS,
        thread: str = "",
    ) -> Any:
        """`streams` of them at once until `turns` were asked and answered, or time is up.

        All in the `thread` of that name, which goes on where the load before left it.
        """
        self.acks.clear()
        self.floor_acks.clear()
        self.late = 0
        self.request_gate.counters.limited.clear()
        self.seen.__init__()  # type: ignore[misc]
        began = time.monotonic()
        numbers = islice(self.numbers, turns)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s), asyncio.TaskGroup() as group:
                for worker in range(streams):
                    group.create_task(
                        self._keep_asking(numbers, worker * stagger_s, channels, thread)
                    )
        return {
            "wall_s": time.monotonic() - began,
            "asked": self.seen.asked,
            "first_text": self.seen.first_text,
            "done": self.seen.done,
            "wrong": self.seen.wrong[:3],
            "errors": self.seen.errors[:10],
            "acks_s": self.acks,
            "floor_acks_s": self.floor_acks,
            "unacknowledged": len(self.workspace.outbox.undelivered),
            "late": self.late,
            "limited": sum(self.request_gate.counters.limited.values()),
            "limited_by": {str(key): n for key, n in self.request_gate.counters.limited.items()},
            "calls": self.seen.calls,
        }

    async def _keep_asking(self, numbers: Any, delay_s: float, channels: int, thread: str) -> None:
        await asyncio.sleep(delay_s)
        for number in numbers:
            marker = f"bench-{number}"
            ended = self.seen.ended[marker] = asyncio.Event()
            self.seen.asked[marker] = time.monotonic()
            user, channel = f"U0BENCH{number % PEOPLE:03}", f"C0BENCH{number % channels:03}"
            text, root = f"@kortex {question(number)}", self.threads.get(thread)
            if thread:
                channel = THREADS_CHANNEL
            ts = await self.workspace.say(user, channel, text, root)
            if thread:
                self.threads.setdefault(thread, ts)
            await ended.wait()


async def _main(limits: str, speed: int) -> None:
    app = AppIdentity()
    clocks = Clocks(monotonic=lambda: time.monotonic() * speed)
    request_gate = SlackRequestGate(RateLimits() if limits == "real" else None, clocks.monotonic)
    workspace = Workspace(Setup(app=app, request_gate=request_gate, clocks=clocks), _roster(app))
    seen = Seen()
    workspace.calls = seen  # type: ignore[assignment]
    people = People(workspace, request_gate, seen)
    floors = AsyncExitStack()  # closed before each next bot, and at the end

    async def answer_to(request: dict[str, Any]) -> Any:
        acts: dict[str, Callable[..., Any]] = {"load": people.load, "deliver_to": deliver_to}
        do = acts[request.pop("do")]
        return await do(**request)

    async def deliver_to(url: str, floor: str) -> None:
        await floors.aclose()  # the bot before this one's
        await floors.enter_async_context(signed_http(workspace, url))
        outbox = workspace.outbox
        session = await floors.enter_async_context(aiohttp.ClientSession())
        beside = SignedHttp(session, floor, app.signing_secret)
        outbox.transport = TimedTransport(outbox.transport, beside, people)

    async with floors, serving(workspace) as origin:
        ready = {
            "api_base_url": api_base_url(int(origin.rsplit(":", 1)[1])),
            "bot_token": app.bot_token,
            "app_token": app.app_token,
            "signing_secret": app.signing_secret,
        }
        await serve(ready, answer_to)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], int(sys.argv[2])))
