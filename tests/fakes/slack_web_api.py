"""Slack's Web API as a table of answers; every call is remembered."""

import asyncio
from collections.abc import Callable, Mapping

from pydantic import JsonValue

Arguments = Mapping[str, JsonValue]
Answering = Callable[[Arguments], Mapping[str, JsonValue]]


class FakeWebApi:
    """Answers by method; an answer may be an exception to raise. `gate` holds calls back.

    Methods that are `silent` never answer.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Mapping[str, JsonValue] | Exception | Answering] = {}
        self.calls: list[tuple[str, Arguments]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.entered = asyncio.Event()
        self.silent: set[str] = set()

    async def call(self, method: str, **arguments: JsonValue) -> Mapping[str, JsonValue]:
        self.calls.append((method, arguments))
        self.entered.set()
        await self.gate.wait()
        if method in self.silent:
            await asyncio.Event().wait()
        answer = self.answers.get(method, {"ok": True})
        if isinstance(answer, Exception):
            raise answer
        return answer(arguments) if callable(answer) else answer

    def count(self, method: str) -> int:
        """How often a method was called."""
        return sum(called == method for called, _ in self.calls)
