"""Durable execution: turns and decisions as workflows that outlive the process.

Every message and every decision is a short workflow with a deterministic id, started directly.
A replica holds a lease row; survivors take over what a dead one left. On SQLite one process owns
the file. What a turn or a decision does lives in `bot.chat` and `bot.actions`.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import IO

import structlog
from dbos import DBOS, SetWorkflowID
from pydantic import JsonValue, TypeAdapter

from bot.chat.traced import EndingBody, TurnBody, TurnTraces
from bot.domain.ids import ProposalId, TurnId, UserId
from bot.domain.session import Ask
from bot.engine.admission import Admission, LeftBehind
from bot.engine.config import DecisionBody, EngineConfig
from bot.engine.database_lock import take_lock
from bot.engine.lease import Lease
from bot.engine.library import HAND_OVER_S, DurableJournal, dbos_config, end_dbos
from bot.engine.quiet import OwnQueue
from bot.engine.rows import EngineRows
from bot.engine.stops import StopSignals
from bot.engine.stranded import StrandedWork
from bot.engine.take_over import DbosRecords, TakeOver
from bot.engine.turn_journal import TurnJournals, ends_recorded
from bot.engine.under_way import Tasks, UnderWay
from bot.engine.waiting import (
    MAX_LIVE_TURNS,
    MAX_LIVE_TURNS_SQLITE,
    ShowWaiting,
    Starts,
    ThreadOrder,
    TurnSlots,
)
from bot.ports.durability import StopSignal
from bot.ports.failures import StorageUnavailable
from bot.ports.proposals import Decision, decision_workflow
from bot.store.accepted import Taken
from bot.store.dialect import storage_errors
from bot.store.replicas import STOOD_STILL_LEASES
from bot.store.stranded import ending_workflow
from bot.store.tickets import Superseded

log = structlog.get_logger(__name__)

UNTRACED = TurnTraces()

_ASK = TypeAdapter(Ask)
_DECISION = TypeAdapter(Decision)


class Engine:
    """Starts, orders, resumes and stops work. Implements `Workflows` and `Stops`."""

    def __init__(
        self,
        config: EngineConfig,
        rows: EngineRows,
        settle: Callable[[], Awaitable[None]] | None = None,
        traces: TurnTraces = UNTRACED,
    ) -> None:
        """`settle` is called once the database is ours, before anything of it is resumed."""
        self._config = config
        self._settle = settle
        self._traces = traces
        self._tickets = tickets = rows.tickets
        self._replicas = replicas = rows.replicas
        self.executor_id = "local" if config.sqlite_path else uuid.uuid4().hex
        self._journals = TurnJournals(tickets, rows.steps, self.executor_id)
        self._presence = replicas.presence(self.executor_id, config.lease_s)
        self._records = DbosRecords(config.version, rows.earlier)
        self._own_queue = OwnQueue()
        mine = (self._records, self.executor_id, config.lease_s)
        self._take_over = TakeOver(replicas, *mine, tickets.hand_over, self._own_queue.hurry)
        self._stops = StopSignals(tickets, self.executor_id, alone=bool(config.sqlite_path))
        self._under_way = UnderWay()
        self._starts = Starts()
        self._order = ThreadOrder(tickets, self.executor_id)
        self._admission = Admission(rows.accepted, lambda: self._accepting, self.begin_turn, traces)
        self._left_behind = LeftBehind(rows.accepted)
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
        leave: Callable[[TurnId], None] = lambda _turn: None,
    ) -> None:
        """Take the database, resume what was left, begin to accept. Raises SecondProcess.

        The lease and stop watchers run in `background` until it is cancelled. `show_waiting` tells
        people that their turn waits for others to end, `show_in_line` that it does in its thread.
        `leave` ends at once what this process shows of a turn that others may have.
        """
        usual = MAX_LIVE_TURNS_SQLITE if self._config.sqlite_path else MAX_LIVE_TURNS
        self._slots = TurnSlots(self._config.max_live_turns or usual, show_waiting)
        await self._take()
        if not self._config.sqlite_path:
            await self._presence.beat()
        self._show_in_line, self._leave = show_in_line, leave
        self._turn_body, self._decision_body = ends_recorded(self._traces.answering(turn)), decision
        self._ending_body = self._traces.ending(ending)
        self._background = background
        self._launch()
        if self._config.sqlite_path:
            await self._records.take_up(self.executor_id)
        self._accepting = True
        self._watchers = [
            background.create_task(self._stops.watch(), name="stops"),
            background.create_task(self._order.watch(), name="thread order"),
        ]
        if not self._config.sqlite_path:
            lease = Lease(self._presence, self._config.lease_s)
            look = partial(self._take_over.look, self._under_way.turns.values())
            holding = lease.hold(look, self._let_turns_go, self._let_lost_go)
            self._watchers.append(background.create_task(holding, name="lease"))
        await self._begin_left(at_once=True)

    async def _take(self) -> None:
        if self._config.sqlite_path:
            self._lock_file = await asyncio.to_thread(take_lock, self._config.sqlite_path)
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
        DBOS(config=dbos_config(self._config, self.executor_id, self._own_queue))

        # Functions, because DBOS writes attributes on what it registers.
        async def turn(ask: JsonValue) -> None:
            await self._run_turn(ask)

        async def decision(proposal_id: str, value: JsonValue) -> None:
            await self._run_decision(proposal_id, value)

        async def ending(ask: JsonValue, told: bool) -> None:
            with self._counted(self._under_way.decisions, "ending"):
                await self._ending_body(_ASK.validate_python(ask), told, DurableJournal())

        self._ending = DBOS.workflow(name="ending", max_recovery_attempts=5)(ending)
        self._turn = DBOS.workflow(name="turn", max_recovery_attempts=None)(turn)
        self._decision = DBOS.workflow(name="decision", max_recovery_attempts=20)(decision)
        DBOS.launch()

    async def stop(self, grace_s: float) -> None:
        """Accept nothing new, let running work end for `grace_s`, hand the rest over."""
        self._accepting = False
        waiting = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await self._starts.none()
                waiting = self._slots.let_go()
                await self._under_way.idle()
        self._leaving = True
        begins = self._starts.under_way
        left = {*self._under_way.turns, *self._under_way.decisions}
        # The watchers too: what is handed over must not be taken back.
        for task in (*left, *self._watchers):
            task.cancel()
        if left:
            log.warning("handing_over", workflows=len(left))
            await asyncio.wait(left, timeout=HAND_OVER_S)
        await self._under_way.recorded(HAND_OVER_S)
        await end_dbos(self._own_queue)
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
        """See `ThreadOrder.take_first_look`."""
        return self._order.take_first_look(ask)

    async def look_after_threads(self) -> int:
        """Free threads of turns that nobody carries on, which are ended with a word; how many.

        Raises StorageUnavailable; what was not done is the next look's.
        """
        await self._order.drop_unstarted()
        await self._begin_left()
        return await self._stranded.sweep(self._start_ending)

    @property
    def live(self) -> int:
        """Workflows running here."""
        return self._under_way.count

    async def start_turn(self, ask: Ask) -> None:
        """Durable, with its place in the thread, when it returns. Raises StorageUnavailable."""
        await self._admission.start_turn(ask)

    def begin_turn(self, ask: Ask, taken: Taken = Taken.KNOWN) -> None:
        """Begin what was accepted, soon. What cannot be begun now is begun by a later look."""
        if self._accepting and not self._goes_on(ask.turn_id):
            self._order.expect(ask, taken)
            self._starts.join(ask.turn_id, partial(self._begin_accepted, ask), self._background)

    def _goes_on(self, turn: str) -> bool:
        return turn in self._under_way.turns.values()

    async def _begin_accepted(self, ask: Ask) -> Exception | None:
        failure = await self._begin(ask.turn_id, self._turn, [_ASK.dump_python(ask, mode="json")])
        if failure is not None:
            self._order.forget(ask.turn_id)
            log.warning("turn_begins_later", turn=ask.turn_id, error=type(failure).__name__)
        return failure

    async def _begin_left(self, *, at_once: bool = False) -> None:
        for ask in await self._left_behind.find(at_once=at_once):
            if not self._goes_on(ask.turn_id):
                log.info("turn_was_left", turn=ask.turn_id)
                self.begin_turn(ask)

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
    ) -> None:
        if not self._accepting:
            raise StorageUnavailable("shutting down; nothing was started")
        # Asked first and through our own connection: DBOS waits for a lost database without end,
        # and would start the work long after the asker was told that nothing was started.
        await self._starts.once(
            workflow_id,
            is_started,
            lambda: self._begin(workflow_id, body, args),
            self._background,
        )

    @staticmethod
    async def _begin(
        workflow_id: str, body: Callable[..., Coroutine[None, None, None]], args: Sequence[object]
    ) -> Exception | None:
        try:
            with storage_errors(), SetWorkflowID(workflow_id):
                await DBOS.start_workflow_async(body, *args)
        except Exception as error:  # noqa: BLE001 - it is raised where the start was asked for
            return error
        return None

    async def _run_turn(self, ask_value: JsonValue) -> None:
        ask = _ASK.validate_python(ask_value)
        with self._counted(self._under_way.turns, ask.turn_id):
            try:
                at_once = not self._slots.are_taken
                entered = await self._order.enter(ask, self._tell_in_line, at_once=at_once)
            except Superseded:
                log.info("turn_superseded", turn=ask.turn_id)
                return
            try:
                with self._stops.of(ask.turn_id) as signal:
                    async with self._slots.hold(ask, signal):
                        # Only now: a turn that waits has done nothing that could end a process.
                        of = partial(self._journals.of, ask.turn_id, entered)
                        journal = await self._order.patiently(ask, of)
                        if journal is not None:
                            await self._turn_body(ask, journal)
            except asyncio.CancelledError:
                raise  # handed over, or going down: the ticket belongs to whoever resumes it
            except BaseException:
                await self._order.leave(ask)
                raise
            else:
                await self._order.leave(ask)
            finally:
                self._order.forget(ask.turn_id)

    def _tell_in_line(self, ask: Ask) -> None:
        if self._show_in_line is not None:
            self._background.create_task(self._show_in_line(ask))

    async def _run_decision(self, proposal_id: str, value: JsonValue) -> None:
        with self._counted(self._under_way.decisions, proposal_id):
            await self._decision_body(
                ProposalId(proposal_id), _DECISION.validate_python(value), DurableJournal()
            )

    @contextmanager
    def _counted(self, tasks: Tasks, name: str) -> Iterator[None]:
        if self._leaving:
            raise asyncio.CancelledError  # begun as the rest was handed over: it goes with them
        with self._under_way.counted(tasks, name):
            yield

    async def request(self, turn: TurnId, by: UserId) -> bool:
        """Ask a running turn to stop, wherever it runs."""
        return await self._stops.request(turn, by)

    def watch(self, turn: TurnId) -> StopSignal:
        """The signal of a turn that runs here."""
        return self._stops.watched(turn)

    def _let_turns_go(self) -> None:
        """This process stood still for so long that others may have taken its turns over.

        Before a turn does anything more, such as an edit over its successor's answer, it ends here.
        """
        log.warning("overslept", turns=len(self._under_way.turns))
        self._take_over.let_go(self._under_way.turns.values())
        self._end_here(self._under_way.turns.values())

    async def _let_lost_go(self) -> None:
        """It was without the database, and runs on: those turns end here that others have."""
        lost = await self._take_over.lost(self._under_way.turns.values())
        log.warning("cut_off", turns=len(self._under_way.turns), lost=len(lost))
        self._end_here(lost)

    def _end_here(self, lost: Collection[str]) -> None:
        for task, turn in self._under_way.turns.items():
            if turn in lost:
                self._leave(TurnId(turn))  # to be cancelled takes its time
                task.cancel()
