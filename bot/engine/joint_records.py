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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple, cast

import sqlalchemy as sa
from dbos import DBOS, DBOSPortableJSONSerializer
from sqlalchemy.sql import visitors

from bot.store.dialect import Connection
from bot.store.in_thread import finished
from bot.store.prepared import prepared
from bot.store.tickets import Superseded

_SUCCESS: Final = "SUCCESS"
_NOTHING: Final = DBOSPortableJSONSerializer().serialize(None)  # what turns return
# In the library's own statements, where those of a turn stand.
_TURN: Final = "kortex:turn"
_TOKEN: Final = "kortex:token"  # noqa: S105 - no secret


class _Begin(NamedTuple):
    """What the library would have written, and the token by which it knows its own row again."""

    status: Any
    token: str | None
    policy: str | None


class JointRecords:
    """Those of the turns that are expected here. Without `join` the library records everything."""

    def __init__(self) -> None:
        self._records: Any = None
        self._ending: Sequence[tuple[sa.Executable, Mapping[str, Any]]] = ()
        self._expected: set[str] = set()
        self._begun: dict[str, _Begin] = {}
        self._ended: set[str] = set()

    def join(self, dbos: DBOS) -> None:
        """From now on, for that library's turns; once it is launched."""
        records: Any = dbos._sys_db  # noqa: SLF001
        self._records = copy.copy(records)  # which goes on to write by itself
        built = _Built(records.engine.get_execution_options())
        self._records._execute_prepared = built  # noqa: SLF001
        self._ending = _ending_of(self._records)
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
        if begin.token is None:  # then it is another statement
            return False
        ours = _Ours(connection, self._records.engine)
        own = {_TURN: turn, _TOKEN: begin.token}
        for statement, values in self._ending:
            given = {name: own.get(value, value) for name, value in values.items()}
            if ours.execute(statement, given).rowcount == 0:
                return False
        return True

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

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._statements: dict[tuple[str, ...], sa.Insert] = {}

    def __call__(
        self,
        connection: Any,
        name: str,
        values: Mapping[str, Any],
        build: Callable[[], sa.Insert],
        *,
        insert_columns: bool = True,  # noqa: ARG002 - its columns are told by its values
    ) -> Any:
        key = (name, *values)
        if (statement := self._statements.get(key)) is None:
            given: dict[str, Any] = {each: sa.bindparam(each) for each in values}
            statement = prepared(build().values(given).execution_options(**self._options))
            self._statements[key] = statement
        return connection.execute(statement, values)


def _ending_of(records: Any) -> Sequence[tuple[sa.Executable, Mapping[str, Any]]]:
    """What the library runs to record a success of a turn, `_TURN`, that began with `_TOKEN`."""
    told = copy.copy(records)
    told.engine = noted = _Noted(records.engine)
    told._update_workflow_outcome_in_transaction(  # noqa: SLF001
        _TURN, _SUCCESS, output=_NOTHING, error=None, owner_xid=_TOKEN
    )
    return noted.statements


class _Noted:
    """What the library would run on its engine, and runs for no turn."""

    rowcount = 1

    def __init__(self, engine: sa.Engine) -> None:
        self._options = engine.get_execution_options()
        self.dialect = engine.dialect
        self.statements: list[tuple[sa.Executable, Mapping[str, Any]]] = []

    @contextmanager
    def begin(self) -> Iterator["_Noted"]:
        yield self

    def execute(
        self, statement: sa.Executable, values: Mapping[str, Any] | None = None
    ) -> "_Noted":
        if values is None:  # it is built with them
            names = {_TURN: "turn", _TOKEN: "token"}
            values = {name: own for own, name in names.items()}
            asked: Any = visitors.replacement_traverse(
                cast("Any", statement), {}, partial(_named, names)
            )
            statement = prepared(asked.execution_options(**self._options))
        self.statements.append((statement, values))
        return self


def _named(names: Mapping[str, str], element: Any, **_: Any) -> sa.BindParameter[Any] | None:
    if not isinstance(element, sa.BindParameter) or not isinstance(element.value, str):
        return None
    name = names.get(element.value)
    return None if name is None else sa.bindparam(name, type_=element.type)


class _Ours:
    """Our connection as the library uses one: its statements are a part of our transaction."""

    def __init__(self, connection: Connection, engine: sa.Engine) -> None:
        self._connection = connection
        self._options = engine.get_execution_options()
        self.dialect = engine.dialect

    def get_execution_options(self) -> Mapping[str, Any]:
        return self._options

    def execution_options(self, **_options: Any) -> "_Ours":
        return self

    def execute(
        self, statement: sa.Executable, values: Mapping[str, Any]
    ) -> sa.CursorResult[*tuple[Any, ...]]:
        return finished(lambda ours: ours.execute(statement, values), self._connection)
