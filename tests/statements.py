"""What a program really asks of its databases, statement by statement, while a test runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa


@dataclass(slots=True)
class Statements:
    """Each statement once, with the parameters it had first; by the driver that ran it."""

    seen: dict[tuple[str, str], Any] = field(default_factory=dict)

    def of(self, driver: str) -> dict[str, Any]:
        """Text and parameters of the statements of one driver."""
        return {text: given for (name, text), given in self.seen.items() if name == driver}

    def note(
        self,
        connection: sa.Connection,
        _cursor: object,
        statement: str,
        parameters: Any,
        _context: object,
        executemany: bool,
    ) -> None:
        """As SQLAlchemy calls it before every statement of every engine; from any thread."""
        first = parameters[0] if executemany else parameters
        self.seen.setdefault((connection.dialect.driver, statement), first)


@contextmanager
def noted() -> Iterator[Statements]:
    statements = Statements()
    sa.event.listen(sa.Engine, "before_cursor_execute", statements.note)
    try:
        yield statements
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", statements.note)
