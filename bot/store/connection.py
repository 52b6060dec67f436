"""What statements are run on, in a transaction of either database. Who opens one is in `engine`."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar

import sqlalchemy as sa

_T = TypeVar("_T")
Parameters = Mapping[str, Any] | Sequence[Mapping[str, Any]]


class Connection(Protocol):
    """The part of SQLAlchemy's AsyncConnection that statements need."""

    @property
    def dialect(self) -> sa.Dialect:
        """Which database it is, by name."""
        ...

    @property
    def sync_connection(self) -> sa.Connection | None:
        """What it stands for; it carries the execution options."""
        ...

    async def execute(
        self, statement: sa.Executable, parameters: Parameters | None = None
    ) -> sa.CursorResult[*tuple[Any, ...]]:
        """Run one statement."""
        ...

    def begin_nested(self) -> AbstractAsyncContextManager[Any]:
        """A savepoint; an exception undoes what was done since."""
        ...

    async def scalar(self, statement: sa.Executable) -> Any:
        """The first column of the first row; None when there is none."""
        ...

    async def scalars(self, statement: sa.Executable) -> sa.ScalarResult[Any]:
        """The first column of every row."""
        ...


# Awaits nothing but the methods of its connection: SQLite's runs in a thread without a loop.
Work = Callable[[Connection], Coroutine[Any, Any, _T]]
