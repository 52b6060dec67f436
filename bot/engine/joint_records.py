"""The workflow library's two records of a turn, each in a transaction of ours: on SQLite alone.

By itself it writes them in transactions of its own, on connections of its own: two more waits for the
disk, and after each of them the writer's pages are read anew. Here the begin is recorded as the turn
enters its thread; until then it has done nothing, and its accepted message stands for it. The end is
recorded as it leaves.

On PostgreSQL the begin says at once whose turn it is, to all other replicas, and the library has its
own way.
"""

import asyncio
import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from dbos import DBOS, DBOSPortableJSONSerializer

from bot.store.dialect import Connection
from bot.store.tickets import Superseded

_SUCCESS: Final = "SUCCESS"
_NOTHING: Final = DBOSPortableJSONSerializer().serialize(None)  # what turns return


class _Begin(NamedTuple):
    """What the library would have written, and the token by which it knows its own row again."""

    status: Any
    token: str | None
    policy: str | None


class JointRecords:
    """Those of the turns that are expected here. Without `join` the library records everything."""

    def __init__(self) -> None:
        self._records: Any = None
        self._expected: set[str] = set()
        self._begun: dict[str, _Begin] = {}
        self._ended: set[str] = set()

    def join(self, dbos: DBOS) -> None:
        """From now on, for that library's turns; once it is launched."""
        records: Any = dbos._sys_db  # noqa: SLF001
        self._records = copy.copy(records)  # which goes on to write by itself
        self._records._execute_prepared = _Built()  # noqa: SLF001
        records.init_workflow = self._init_workflow
        records.update_workflow_outcome = self._update_workflow_outcome

    def expect(self, turn: str) -> None:
        """It is about to be begun, and may enter its thread with its first transaction."""
        if self._records is not None:
            self._expected.add(turn)

    def knows(self, turn: str) -> bool:
        """Whether it is expected, or begun and not ended."""
        return turn in self._expected or turn in self._begun

    @contextmanager
    def of(self, turn: str) -> Iterator[None]:
        """While it runs. One that is cancelled ends here without a record: others go on with it."""
        try:
            yield
        except asyncio.CancelledError:
            self.forget(turn)
            raise

    def forget(self, turn: str) -> None:
        """It was not begun, or is handed over."""
        self._expected.discard(turn)
        self._begun.pop(turn, None)
        self._ended.discard(turn)

    async def begin_alone(self, turn: str) -> None:
        """Record the begin now, if it waits. Raises Superseded: somebody else has begun it."""
        if begin := self._begun.get(turn):
            _, is_ours = await asyncio.to_thread(self._recorded, begin)
            if not is_ours:
                raise Superseded(turn)

    async def begin(self, connection: Connection, turn: str) -> None:
        """Record the begin in that transaction, if it waits, once. Raises Superseded."""
        if begin := self._begun.get(turn):
            ours = _Ours(connection, self._records.engine)
            _, is_ours = self._records.init_workflow_with_connection(
                begin.status, ours, creator_xid=begin.token
            )
            if not is_ours:
                raise Superseded(turn)

    async def end(self, connection: Connection, turn: str) -> bool:
        """Record a success in that transaction; False where that is the library's to do."""
        begin = self._begun.get(turn)
        if begin is None:
            return False
        if self._succeeded(connection, turn, begin):
            return True
        await self.begin(connection, turn)  # it ended before any transaction
        return self._succeeded(connection, turn, begin)

    def ended(self, turn: str) -> None:
        """What `end` wrote is committed: the library, which asks next, need not."""
        self._ended.add(turn)

    def _succeeded(self, connection: Connection, turn: str, begin: _Begin) -> bool:
        records = copy.copy(self._records)
        records.engine = _Ours(connection, self._records.engine)
        ended: bool = records._update_workflow_outcome_in_transaction(  # noqa: SLF001
            turn, _SUCCESS, output=_NOTHING, error=None, owner_xid=begin.token
        )
        return ended

    def _recorded(self, begin: _Begin) -> tuple[str, bool]:
        recorded: tuple[str, bool] = self._records.init_workflow(
            begin.status, creator_xid=begin.token, reuse_policy=begin.policy
        )
        return recorded

    # In place of the library's, each in a thread of its own.

    def _init_workflow(
        self, status: Any, *, creator_xid: str | None, reuse_policy: str | None = None
    ) -> tuple[str, bool]:
        turn, begin = status["workflow_uuid"], _Begin(status, creator_xid, reuse_policy)
        if turn not in self._expected:
            return self._recorded(begin)
        self._expected.discard(turn)
        self._begun[turn] = begin
        return status["status"], True

    def _update_workflow_outcome(self, workflow_id: str, status: str, **outcome: Any) -> bool:
        begin = self._begun.pop(workflow_id, None)
        if workflow_id in self._ended:
            self._ended.discard(workflow_id)
            return True
        if begin is not None:  # it may have failed before any transaction
            self._recorded(begin)
        recorded: bool = self._records.update_workflow_outcome(workflow_id, status, **outcome)
        return recorded


class _Built:
    """The library's way to run what it builds once: on SQLite it builds anew for each turn.

    As on PostgreSQL, a statement is told by its name and its columns.
    """

    def __init__(self) -> None:
        self._statements: dict[tuple[str, ...], Any] = {}

    def __call__(
        self,
        connection: Any,
        name: str,
        values: Mapping[str, Any],
        build: Callable[[], Any],
        *,
        insert_columns: bool = True,  # noqa: ARG002 - its columns are told by its values
    ) -> Any:
        key = (name, *values)
        if (statement := self._statements.get(key)) is None:
            statement = self._statements[key] = build()
        return connection.execute(statement, values)


class _Ours:
    """Our connection as the library uses its engine: its transaction is a part of ours."""

    def __init__(self, connection: Connection, engine: sa.Engine) -> None:
        self._connection = connection.sync_connection
        self._options = engine.get_execution_options()
        self.dialect = engine.dialect

    @contextmanager
    def begin(self) -> Iterator["_Ours"]:
        yield self

    def get_execution_options(self) -> Mapping[str, Any]:
        return self._options

    def execution_options(self, **_options: Any) -> "_Ours":
        return self

    def execute(
        self, statement: sa.Executable, values: Mapping[str, Any] | None = None
    ) -> sa.CursorResult[Any]:
        return self._connection.execute(statement, values, execution_options=self._options)
