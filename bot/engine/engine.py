"""Turns and decisions as durable workflows, which another process resumes after a crash.

Every message and every decision starts a short workflow with a deterministic id, directly. A replica
holds a lease; live replicas take over the workflows of dead ones. On SQLite one process owns the
file. The bodies of turns and decisions live in `bot.chat` and `bot.actions`.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import IO, Final, Self

import structlog
from dbos import DBOS
from pydantic import JsonValue, TypeAdapter

from bot.chat.traced import EndingBody, TurnBody, TurnTraces
from bot.domain.ids import ProposalId, TurnId, UserId
from bot.domain.session import Ask
from bot.engine.config import EARLIER_VERSIONS, DecisionBody, EngineConfig, lock_when_free
from bot.engine.dbos_setup import dbos_config, end_dbos
from bot.engine.journal import DurableJournal, TurnJournals
from bot.engine.lease import DbosRecords, Failover, Lease
from bot.engine.queue import (
    MAX_LIVE_TURNS,
    MAX_LIVE_TURNS_SQLITE,
    ShowWaiting,
    ThreadQueue,
    Trials,
    TurnSlots,
)
from bot.engine.stops import StopSignals
from bot.engine.stranded import StrandedWork, UnstartedTurns
from bot.engine.workflows import RunningWorkflows, Starts, Tasks, TurnToWrite, begin_workflow
from bot.ports.durability import StopSignal
from bot.ports.failures import StorageUnavailable
from bot.ports.proposals import Decision, decision_workflow
from bot.store.accepted import HalfStarted
from bot.store.database import Database
from bot.store.earlier_work import EarlierWork
from bot.store.replicas import STOOD_STILL_LEASES, Replicas
from bot.store.stranded import StrandedTurns, ending_workflow
from bot.store.tickets import Superseded, Tickets
from bot.store.turn_steps import TurnSteps

log = structlog.get_logger(__name__)

UNTRACED = TurnTraces()

HAND_OVER_S: Final = 5.0  # for cancelled work to close its connections
_ASK = TypeAdapter(Ask)
_DECISION = TypeAdapter(Decision)


@dataclass(frozen=True, slots=True)
class EngineRepositories:
    """The tables that the engine uses, in one database, and DBOS's turn to write there."""

    tickets: Tickets
    steps: TurnSteps
    replicas: Replicas
    stranded: StrandedTurns
    earlier: EarlierWork
    half_started: HalfStarted
    turn_to_write: TurnToWrite

    @classmethod
    def of(cls, database: Database, version: str) -> Self:
        """For processes that know that version of the steps."""
        return cls(
            Tickets(database),
            TurnSteps(database),
            Replicas(database, version),
            StrandedTurns(database),
            EarlierWork(database, version, EARLIER_VERSIONS),
            HalfStarted(database),
            database.turn_to_write,
        )


class Engine:
    """Starts, orders, resumes and stops work. Implements `Workflows` and `Stops`."""

    def __init__(
        self,
        config: EngineConfig,
        rows: EngineRepositories,
        settle: Callable[[], Awaitable[None]] | None = None,
        traces: TurnTraces = UNTRACED,
    ) -> None:
        """`settle` is called once the database is locked, before any workflow is resumed."""
        self._config = config
        self._settle = settle
        self._traces = traces
        self._tickets = tickets = rows.tickets
        self._replicas = replicas = rows.replicas
        self.executor_id = "local" if config.sqlite_path else uuid.uuid4().hex
        self._turn_to_write = rows.turn_to_write
        self._journals = TurnJournals(tickets, rows.steps, self.executor_id)
        self._presence = replicas.presence(self.executor_id, config.lease_s)
        self._records = DbosRecords(config.version, rows.earlier)
        mine = (self._records, self.executor_id, config.lease_s)
        self._failover = Failover(replicas, *mine, tickets.hand_over)
        self._stops = StopSignals(tickets, self.executor_id, alone=bool(config.sqlite_path))
        self._running = RunningWorkflows()
        self._starts = Starts()
        self._thread_queue = ThreadQueue(tickets, self.executor_id)
        self._left_behind = UnstartedTurns(rows.half_started)
        others = None if config.sqlite_path else replicas
        dead_s = STOOD_STILL_LEASES * config.lease_s
        self._stranded = StrandedWork(
            rows.stranded, tickets, others, rows.earlier, config.version, dead_s
        )
        self._accepting = self._leaving = False
        self._lock_file: IO[bytes] | None = None
        self._watchers: list[asyncio.Task[None]] = []

    async def start(
        self,
        background: asyncio.TaskGroup,
        turn: TurnBody,
        decision: DecisionBody,
        ending: EndingBody,
        show_waiting: ShowWaiting,
        show_in_line: ShowWaiting | None = None,
        stop_edits: Callable[[TurnId], None] = lambda _turn: None,
    ) -> None:
        """Lock the database, resume unfinished work, begin to accept. Raises SecondProcess.

        The watchers run in `background` until it is cancelled. `show_waiting` shows that a turn
        waits for a slot, `show_in_line` that it waits for earlier turns of its thread. `stop_edits` stops
        this process's edits of a turn that another replica may run.
        """
        usual = MAX_LIVE_TURNS_SQLITE if self._config.sqlite_path else MAX_LIVE_TURNS
        self._slots = TurnSlots(self._config.max_live_turns or usual, show_waiting)
        self._trials = Trials(self._slots, self._begin_trial)
        await self._take()
        if not self._config.sqlite_path:
            await self._presence.beat()
        self._show_in_line, self._stop_edits = show_in_line, stop_edits
        self._turn_body, self._decision_body = self._traces.answering(turn), decision
        self._ending_body = self._traces.ending(ending)
        self._background = background
        self._launch()
        if self._config.sqlite_path:
            await self._records.take_up(self.executor_id)
        self._accepting = True
        self._watchers = [
            background.create_task(self._stops.watch(), name="stops"),
            background.create_task(self._thread_queue.watch(), name="thread order"),
        ]
        if not self._config.sqlite_path:
            lease = Lease(self._presence, self._config.lease_s)
            look = partial(self._failover.look, self._running.turns.values())
            holding = lease.hold(look, self._let_turns_go, self._let_lost_go)
            self._watchers.append(background.create_task(holding, name="lease"))
        await self._start_left(at_once=True)

    async def _take(self) -> None:
        if self._config.sqlite_path:
            self._lock_file = await lock_when_free(self._config.sqlite_path)
        try:
            if self._settle is not None:
                await self._settle()
        except BaseException:
            self._let_in()
            raise

    def _let_in(self) -> None:
        if self._lock_file is not None:
            self._lock_file.close()

    def _launch(self) -> None:
        DBOS(config=dbos_config(self._config, self.executor_id))

        # Plain functions, because DBOS sets attributes on the functions that it registers.
        async def turn(ask: JsonValue) -> None:
            await self._run_turn(ask)

        async def decision(proposal_id: str, value: JsonValue) -> None:
            await self._run_decision(proposal_id, value)

        async def ending(ask: JsonValue, told: bool) -> None:
            with self._counted(self._running.decisions, "ending"):
                await self._ending_body(_ASK.validate_python(ask), told, DurableJournal())

        self._ending = DBOS.workflow(name="ending", max_recovery_attempts=5)(ending)
        self._turn = DBOS.workflow(name="turn", max_recovery_attempts=None)(turn)
        self._decision = DBOS.workflow(name="decision", max_recovery_attempts=20)(decision)
        DBOS.launch()

    async def stop(self, grace_s: float) -> None:
        """Accept nothing new, give running work `grace_s` to end, hand over the rest."""
        self._accepting = False
        waiting = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await self._starts.none()
                waiting = self._slots.let_go()
                await self._running.idle()
        self._leaving = True
        begins = self._starts.in_progress
        left = {*self._running.turns, *self._running.decisions}
        # The watchers too, or this replica would take its own work back.
        for task in (*left, *self._watchers):
            task.cancel()
        if left:
            log.warning("turns.handed_over", workflows=len(left))
            await asyncio.wait(left, timeout=HAND_OVER_S)
        await self._running.recorded(HAND_OVER_S)
        await end_dbos()
        with suppress(StorageUnavailable):
            if left or waiting:
                await self._tickets.hand_over(self.executor_id)
            await self._sign_off(nothing_left=not (left or waiting or begins))
        await self._presence.close()
        self._let_in()

    async def _sign_off(self, *, nothing_left: bool) -> None:
        if self._config.sqlite_path:
            return
        if not (nothing_left and await self._replicas.forget(self.executor_id)):
            await self._replicas.give_up(self.executor_id)

    def take_first_look(self, ask: Ask) -> bool:
        return self._thread_queue.take_first_look(ask)

    async def look_after_threads(self) -> int:
        """End stranded turns and free their threads; returns how many.

        Raises StorageUnavailable; the next look continues.
        """
        await self._start_left()
        return await self._stranded.sweep(self._start_ending)

    @property
    def live(self) -> int:
        return self._running.count

    async def start_turn(self, ask: Ask) -> None:
        """Start a turn; it is durable and has its place in the thread when this returns.

        Raises StorageUnavailable.
        """
        turn = ask.turn_id
        with self._traces.accepting(ask), self._thread_queue.expected(turn) as placed:
            value = _ASK.dump_python(ask, mode="json")
            if await self._start(turn, self._tickets.is_started, self._turn, value):
                await self._thread_queue.has_place(turn, placed)

    async def _start_left(self, *, at_once: bool = False) -> None:
        for ask in await self._left_behind.find(at_once=at_once):
            log.info("turn.recovered", turn=ask.turn_id)
            await self.start_turn(ask)

    async def start_decision(self, proposal_id: ProposalId, decision: Decision) -> None:
        """Durable when it returns. Raises StorageUnavailable."""
        value = _DECISION.dump_python(decision, mode="json")
        workflow_id, known = decision_workflow(decision.key), self._tickets.is_started
        await self._start(workflow_id, known, self._decision, proposal_id, value)

    async def _start_ending(self, ask: Ask, told: bool) -> None:
        value, known = _ASK.dump_python(ask, mode="json"), self._tickets.is_started
        await self._start(ending_workflow(ask.turn_id), known, self._ending, value, told)

    async def _start(
        self,
        workflow_id: str,
        is_started: Callable[[str], Awaitable[bool]],
        body: Callable[..., Coroutine[None, None, None]],
        *args: object,
    ) -> bool:
        if not self._accepting:
            raise StorageUnavailable("shutting down; nothing was started")
        # Kortex checks first, on its own connection. DBOS retries a lost database without end, and
        # would start the work long after the user saw that it failed.
        return await self._starts.once(
            workflow_id,
            is_started,
            lambda: begin_workflow(workflow_id, body, args, self._turn_to_write),
            self._background,
        )

    async def _run_turn(self, ask_value: JsonValue) -> None:
        ask = _ASK.validate_python(ask_value)
        with self._counted(self._running.turns, ask.turn_id):
            try:
                is_first = await self._thread_queue.enter(ask, self._tell_in_line)
            except Superseded:
                log.info("turn.superseded", turn=ask.turn_id)
                return
            try:
                await self._answer(ask, is_first=is_first)
            except asyncio.CancelledError:
                raise  # handed over, or shutting down: the replica that resumes it has the ticket
            except BaseException:
                await self._thread_queue.leave(ask)
                raise
            else:
                await self._thread_queue.leave(ask)
            finally:
                self._thread_queue.forget(ask.turn_id)

    async def _answer(self, ask: Ask, *, is_first: bool) -> None:
        with self._stops.of(ask.turn_id) as signal:
            async with self._slots.hold(ask, signal):
                # Only now: a turn that waits cannot have ended its process.
                open_ = partial(self._journals.open, ask.turn_id, is_first=is_first)
                opened = await self._thread_queue.patiently(ask, open_)
                if opened is None:
                    return
                async with self._trials.of(ask, opened.deaths, signal) as end_trial:
                    opened.journal.recorded = end_trial
                    if opened.deaths:
                        clear = self._tickets.clear_deaths
                        opened.journal.clear_deaths = partial(clear, ask.turn_id, self.executor_id)
                    try:
                        await self._turn_body(ask, opened.journal)
                    except asyncio.CancelledError:
                        await opened.journal.let_go()
                        raise

    async def _begin_trial(self, ask: Ask, is_alone: bool) -> None:
        mine = (ask.turn_id, self.executor_id)
        begin = partial(self._tickets.begin_trial, *mine, is_alone=is_alone)
        await self._thread_queue.patiently(ask, begin)

    def _tell_in_line(self, ask: Ask) -> None:
        if self._show_in_line is not None:
            self._background.create_task(self._show_in_line(ask))

    async def _run_decision(self, proposal_id: str, value: JsonValue) -> None:
        with self._counted(self._running.decisions, proposal_id):
            await self._decision_body(
                ProposalId(proposal_id), _DECISION.validate_python(value), DurableJournal()
            )

    @contextmanager
    def _counted(self, tasks: Tasks, name: str) -> Iterator[None]:
        if self._leaving:
            raise asyncio.CancelledError  # started during the hand-over, so handed over too
        with self._running.counted(tasks, name):
            yield

    async def request(self, turn: TurnId, by: UserId) -> bool:
        return await self._stops.request(turn, by)

    def watch(self, turn: TurnId) -> StopSignal:
        return self._stops.watched(turn)

    def _let_turns_go(self) -> None:
        """End all turns here: after a long freeze another replica may have taken them over.

        A turn that went on could edit its successor's answer.
        """
        log.warning("replica.frozen", turns=len(self._running.turns))
        self._failover.let_go(self._running.turns.values())
        self._end_here(self._running.turns.values())

    async def _let_lost_go(self) -> None:
        """End the turns that another replica took over while this one could not reach the database."""
        lost = await self._failover.lost(self._running.turns.values())
        log.warning("replica.disconnected", turns=len(self._running.turns), lost=len(lost))
        self._end_here(lost)

    def _end_here(self, lost: Collection[str]) -> None:
        for task, turn in self._running.turns.items():
            if turn in lost:
                self._stop_edits(TurnId(turn))  # the cancellation takes a moment
                task.cancel()
