"""A tool with behaviour that a test chooses, and a runner around any tools."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from pydantic import ConfigDict

from tests.fakes.capabilities import FakeClock, call_context, fake_capabilities
from tests.fakes.redactor import FakeRedactor
from tools.capabilities import CallContext, Capabilities
from tools.catalog import ToolCatalog
from tools.contract import (
    QUERY,
    AnyTool,
    Effect,
    Timeouts,
    ToolContract,
    ToolInput,
    ToolOutput,
)
from tools.policy import ToolPolicy
from tools.products import OF_NO_PRODUCT
from tools.records import CallEvent, ToolInvocationRecord, ToolOutcome
from tools.runner import RunnerHooks, ToolRunner


class EchoInput(ToolInput):
    """One text and one number."""

    text: str
    times: int = 1


class EchoOutput(ToolOutput):
    """Anything a test wants to return."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=True)

    text: str = ""


def contract(**changes: Any) -> ToolContract:
    """A read-only tool `core__echo` that shows `text`."""
    fields: dict[str, Any] = {
        "id": "core__echo",
        "description": "Echo.",
        "input": EchoInput,
        "output": EchoOutput,
        "effect": Effect.READ_ONLY,
        "redaction": frozenset({"text", "items", "value", "next_cursor"}),
        "timeouts": QUERY,
        "capabilities": frozenset(),
        "products": OF_NO_PRODUCT,
    }
    return ToolContract(**{**fields, **changes})


def _echo(arguments: EchoInput) -> object:
    return EchoOutput(text=arguments.text * arguments.times)


@dataclass
class FakeTool:
    """Answers with `answer(arguments)`; when `gate` is set, waits for it first."""

    contract: ToolContract = field(default_factory=contract)
    answer: Callable[[EchoInput], object] = _echo
    gate: asyncio.Event | None = None
    started: asyncio.Event = field(default_factory=asyncio.Event)
    calls: list[tuple[Any, CallContext]] = field(default_factory=list)

    async def execute(self, arguments: Any, call: CallContext, caps: Capabilities) -> Any:
        self.calls.append((arguments, call))
        self.started.set()
        if self.gate is not None:
            await self.gate.wait()
        return self.answer(arguments)

    def summarise(self, output: Any, arguments: Any) -> str:
        return f"echoed {len(output.text)} characters"


ALL = ToolPolicy(toolsets={"investigate": ("core__*", "plugin__*")})


@dataclass
class Bench:
    """A runner with everything around it within a test's reach."""

    runner: ToolRunner
    catalog: ToolCatalog
    events: list[CallEvent] = field(default_factory=list)
    records: list[ToolInvocationRecord] = field(default_factory=list)
    bugs: list[str] = field(default_factory=list)

    async def run(
        self, arguments: str = '{"text":"hi"}', name: str = "core__echo", **context: object
    ) -> ToolOutcome:
        return await self.runner.run(
            "call1", name, arguments, call_context(**context), self.events.append
        )


def bench(
    tools: Iterable[AnyTool],
    policy: ToolPolicy = ALL,
    caps: Capabilities | None = None,
    redactor: FakeRedactor | None = None,
    authorise: Any = None,
    on_record: Any = None,
    **options: Any,
) -> Bench:
    """Records and bugs are collected; `on_record` replaces the collecting hook."""
    records: list[ToolInvocationRecord] = []
    bugs: list[str] = []

    async def keep(record: ToolInvocationRecord, ctx: CallContext) -> None:
        records.append(record)

    catalog = ToolCatalog(tools, policy)
    runner = ToolRunner(
        catalog,
        policy,
        caps or fake_capabilities(),
        redactor or FakeRedactor(),
        FakeClock(),
        hooks=RunnerHooks(authorise, on_record or keep, bugs.append),
        **options,
    )
    return Bench(runner, catalog, records=records, bugs=bugs)


INSTANT = Timeouts(0.001, 0.001)
