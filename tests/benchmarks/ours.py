"""Our side of the loop alone: provider, loop, runner with validation, redaction, an audited SQLite.

No Slack, no durable engine and no records of steps: those are measured as a whole turn. What a step tells
the audit log is written when the step would be recorded, in one transaction, as in a turn.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.llm.config import ProviderConfig
from adapters.llm.messages import CompleteRequest, Message, Role, ToolCall, ToolSpec
from adapters.llm.registry import create
from bot.app.backend_selection import SystemClock
from bot.chat.conversation import Conversation
from bot.chat.loop import Emit, Loop
from bot.chat.round_record import RoundRecord
from bot.chat.rounds import Rounds
from bot.chat.stopping import Signal
from bot.chat.tool_calls import Toolbox, TurnTools, record_calls
from bot.engine.journal import TurnJournal
from bot.privacy.redactor import TextRedactor
from bot.store import schema
from bot.store.audit import StoredAudit, append_audits
from bot.store.database import Database
from bot.store.step_rows import StepRows
from bot.store.turn_steps import Step, TurnSteps
from bot.telemetry.metrics import Metrics
from tests.benchmarks.transcript import SYSTEM_BYTES, log_lines, question
from tests.fakes.capabilities import call_context, fake_capabilities
from tests.fixtures_rounds import unlimited
from tools.call_limits import Spent
from tools.capabilities import LogLine, LogPage, LogQuery
from tools.catalog import ToolCatalog
from tools.core.all import core_tools
from tools.cursor import CursorSigner
from tools.policy import ToolPolicy
from tools.records import CallEvent, ToolOutcome
from tools.runner import RunnerHooks, ToolRunner

SYSTEM = ("You are the investigator of an incident channel. " * 200)[:SYSTEM_BYTES]
KEY = b"benchmark" * 4


class CannedLogs:
    """The same 3 KB for every query."""

    async def query(self, query: LogQuery) -> LogPage:
        return LogPage([LogLine(10**18, "error", "checkout-1", line, "") for line in log_lines()])


class AuditRowsOnly(TurnSteps):
    """The rows of the audit log without the steps that they belong to."""

    async def keep(
        self,
        turn: str,
        owner: str,
        steps: Sequence[Step],
        rows: StepRows,
    ) -> bool:
        async def work(connection: AsyncConnection) -> None:
            await append_audits(connection, rows.events)

        await self._database.transact(work)
        return True


@dataclass(frozen=True)
class Ours:
    """What turns need, shared by all of them."""

    rounds: Rounds
    tools: TurnTools
    steps: TurnSteps
    specs: tuple[ToolSpec, ...]

    async def turn(self, number: int) -> Conversation:
        """One turn to its end."""
        stop = Signal()
        context = call_context(turn_id=f"bench-{number}", now=SystemClock().now())

        async def ask(
            request: CompleteRequest, number: int, emit: Emit, prefer: str, *, full: bool
        ) -> RoundRecord:
            return await self.rounds.run(
                request, number, emit, stop, budget=unlimited(), prefer=prefer
            )

        async def execute(
            call: ToolCall,
            on_event: Callable[[CallEvent], None],
            *,
            untrusted_read: bool,
            spent: Spent,
        ) -> ToolOutcome:
            asking = replace(context, untrusted_read=untrusted_read, spent=spent)
            return await self.tools.run(call, asking, on_event, stop)

        request = CompleteRequest(SYSTEM, (Message(Role.USER, question(number)),), self.specs)
        loop = Loop(ask, execute, TurnJournal(context.turn_id, "", self.steps), max_tool_rounds=8)
        _, talk = await loop.run(request, lambda _event: None)
        return talk


@asynccontextmanager
async def ours(wire: str, url: str, folder: Path) -> AsyncIterator[Ours]:
    """Open a provider at that URL and a fresh database."""
    database_url = f"sqlite+aiosqlite:///{folder}/loop.db"
    await schema.migrate(database_url)
    database = await Database.open(database_url)
    provider = create(ProviderConfig(wire, api_key="k", base_url=url, model="bench-model"))
    clock = SystemClock()
    policy = ToolPolicy(toolsets={"investigate": ("core__*",)})
    capabilities = fake_capabilities(logs=CannedLogs(), clock=clock)
    catalog = ToolCatalog(core_tools(CursorSigner(KEY)), policy, capabilities)
    audit = record_calls(StoredAudit(database), Metrics())
    runner = ToolRunner(
        catalog, policy, capabilities,
        TextRedactor(["sk-a-configured-secret"], KEY), clock, hooks=RunnerHooks(on_record=audit),
    )  # fmt: skip
    tools = TurnTools(lambda _call: Toolbox(catalog, runner), clock)
    specs = tuple(
        ToolSpec(d.name, d.description, dict(d.input_schema)) for d in tools.visible(call_context())
    )
    try:
        yield Ours(Rounds([provider]), tools, AuditRowsOnly(database), specs)
    finally:
        await provider.aclose()
        await database.close()
