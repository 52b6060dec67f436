"""Slack's Web API in memory: messages in threads, faults on demand, calls that can be held."""

import asyncio
import copy
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from bot.ports.failures import MessageGone, SurfaceGone
from bot.slack.api.calls import SlackCalls


@dataclass(slots=True)
class Lost:
    """The call takes effect, its answer does not arrive."""

    error: Exception


@dataclass(slots=True)
class FakeSlackWeb(SlackCalls):
    """Implements the port. `faults[method]` are raised in order, one per call."""

    messages: dict[str, dict[str, JsonValue]] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, JsonValue]]] = field(default_factory=list)
    uneditable: dict[str, Exception] = field(default_factory=dict)  # by ts, for good
    faults: dict[str, deque[Exception | Lost]] = field(default_factory=lambda: defaultdict(deque))
    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    begun: Counter[str] = field(default_factory=Counter)
    called: asyncio.Condition = field(default_factory=asyncio.Condition)
    user: str = "UBOT"

    async def call(self, method: str, **args: JsonValue) -> Mapping[str, JsonValue]:
        """As Slack would."""
        self.begun[method] += 1
        await self._tell()
        if gate := self.gates.get(method):
            await gate.wait()
        fault = self.faults[method].popleft() if self.faults[method] else None
        if isinstance(fault, Exception):
            raise fault
        answer = getattr(self, "_" + method.replace(".", "_").lower())(**copy.deepcopy(args))
        self.calls.append((method, args))
        await self._tell()
        if isinstance(fault, Lost):
            raise fault.error
        return answer  # type: ignore[no-any-return]

    async def until(self, method: str, count: int = 1, *, begun: bool = False) -> None:
        """Wait for that many calls of a method, answered or begun."""
        async with asyncio.timeout(5), self.called:
            await self.called.wait_for(
                lambda: (self.begun[method] if begun else self.count(method)) >= count
            )

    def count(self, method: str) -> int:
        """Calls that took effect."""
        return sum(1 for name, _ in self.calls if name == method)

    def texts(self) -> list[str]:
        """What the messages say, oldest first."""
        return [str(self.messages[ts]["text"]) for ts in sorted(self.messages)]

    async def _tell(self) -> None:
        async with self.called:
            self.called.notify_all()

    def _chat_postmessage(self, **args: JsonValue) -> dict[str, JsonValue]:
        ts = f"1800000000.{len(self.calls):06d}"
        self.messages[ts] = {**args, "ts": ts, "user": self.user}
        return {"ok": True, "ts": ts}

    def _chat_update(self, channel: str, ts: str, **content: JsonValue) -> dict[str, JsonValue]:
        if ts in self.uneditable:
            raise self.uneditable[ts]
        if ts not in self.messages:
            raise MessageGone("chat.update: message_not_found")
        self.messages[ts] |= content
        return {"ok": True, "ts": ts}

    def _chat_delete(self, channel: str, ts: str) -> dict[str, JsonValue]:
        if self.messages.pop(ts, None) is None:
            raise SurfaceGone("chat.delete: message_not_found")
        return {"ok": True}

    def _chat_postephemeral(self, **args: JsonValue) -> dict[str, JsonValue]:
        return {"ok": True}

    def _chat_getpermalink(self, channel: str, message_ts: str) -> dict[str, JsonValue]:
        link = f"https://team.slack.com/archives/{channel}/p{message_ts.replace('.', '')}"
        return {"ok": True, "channel": channel, "permalink": link}

    def _conversations_replies(self, ts: str, **args: JsonValue) -> dict[str, JsonValue]:
        found = [m for m in self.messages.values() if m.get("thread_ts") == ts]
        return {"ok": True, "messages": list[JsonValue](found)}

    def _conversations_history(self, **args: JsonValue) -> dict[str, JsonValue]:
        found = [m for m in self.messages.values() if not m.get("thread_ts")]
        return {"ok": True, "messages": list[JsonValue](found)}
