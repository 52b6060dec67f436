"""Statements that are compiled once for a database and then run on the driver itself.

SQLAlchemy compiles a statement once as well, but at each execution looks for what it compiled by
all that the statement is made of, and makes a context, a cursor and its metadata anew: ten times the
work of SQLite. Here only the parameters and the rows are converted, by the same converters. A statement
that `prepared` does not name goes through SQLAlchemy.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy.engine.result import IteratorResult, SimpleResultMetaData
from sqlalchemy.sql.compiler import SQLCompiler

from bot.store.dialect import Parameters

_Statement = TypeVar("_Statement", bound=sa.Executable)
_Convert = Callable[[Any], Any]

# Lists of another length are another text for the database. Longer ones are rare, and left to SQLAlchemy.
_MOST_ITEMS: Final = 16

# How many rows a statement gives at most.
MOST: Final = sa.bindparam("most", type_=sa.Integer())

_prepared: set[sa.Executable] = set()


def prepared(statement: _Statement) -> _Statement:
    """It is run often, is made once and kept, and names what differs by `bindparam`, its lists too."""
    _prepared.add(statement)
    return statement


class Driver(Protocol):
    """What SQLite's and PostgreSQL's connections have in common."""

    def execute(self, sql: str, parameters: Any, /) -> Any:
        """Run one statement; the cursor that holds its rows."""
        ...

    def cursor(self) -> Any:
        """One that runs a statement for many parameters."""
        ...


class Answer(IteratorResult[*tuple[Any, ...]]):
    """What a statement answered: its rows, and how many it changed."""

    def __init__(self, columns: SimpleResultMetaData, rows: Sequence[Any], rowcount: int) -> None:
        super().__init__(columns, iter(rows))
        self.rowcount = rowcount


class _Place(NamedTuple):
    """Where a parameter stands, or an item of one that is a list."""

    at: int
    name: str
    item: int | None
    convert: _Convert | None

    def value(self, given: Mapping[str, Any]) -> Any:
        """What stands there."""
        value = given[self.name] if self.item is None else given[self.name][self.item]
        return value if self.convert is None else self.convert(value)


class _Text(NamedTuple):
    """`constants` are the values of all marks, with None where a parameter stands.

    `names` are those of the marks where the driver takes its parameters by name.
    """

    sql: str
    constants: Sequence[Any]
    singles: Sequence[tuple[int, str, _Convert]]
    others: Sequence[_Place]
    names: Sequence[str] | None

    def values(self, given: Mapping[str, Any]) -> Sequence[Any] | Mapping[str, Any]:
        """All that the driver takes, as it takes it."""
        values = self.in_order(given)
        return values if self.names is None else dict(zip(self.names, values, strict=True))

    def in_order(self, given: Mapping[str, Any]) -> Sequence[Any]:
        values = [*self.constants]
        for at, name, convert in self.singles:
            values[at] = convert(given[name])
        for place in self.others:
            values[place.at] = place.value(given)
        return values

    def rows(self, count: int) -> str | None:
        """To insert as many rows in one step; None of what does not end with the values of a row."""
        head, values, row = self.sql.rpartition(" VALUES ")
        if count > _MOST_ITEMS or row != f"({', '.join('?' * len(self.constants))})":
            return None
        return f"{head}{values}{', '.join([row] * count)}"


class Compiled:
    """One statement for one dialect. `has_rows`: it answers with rows."""

    def __init__(self, statement: sa.Executable, dialect: sa.Dialect) -> None:
        # One of rows, or a change: of any other nothing is prepared.
        asked = cast("sa.Select[Any] | sa.Insert | sa.Update | sa.Delete", statement)
        schemas = asked.get_execution_options().get("schema_translate_map")
        compiled = asked.compile(
            dialect=dialect,
            schema_translate_map=schemas,
            render_schema_translate=schemas is not None,
        )
        assert isinstance(compiled, SQLCompiler)  # noqa: S101 - of a statement it is nothing else
        self._dialect = dialect
        self._compiled = compiled
        self._error: type[Exception] = _error_of(dialect)
        columns = [*asked.exported_columns]
        self.has_rows = bool(columns)
        self._columns = SimpleResultMetaData([str(each.key) for each in columns])
        converts = [
            each.type.dialect_impl(dialect).result_processor(dialect, None) for each in columns
        ]
        self._converts = [(n, each) for n, each in enumerate(converts) if each is not None]
        self._lists = [
            bind.key for bind in compiled.binds.values() if bind.expanding and bind.required
        ]
        self._texts: dict[tuple[int, ...], _Text] = {}

    def run(self, driver: Driver, given: Parameters | None) -> Answer | None:
        """What it answers; None where SQLAlchemy has to be asked."""
        if isinstance(given, Sequence):
            return self._run_many(driver, given)
        given = given or {}
        lengths = tuple(len(given[name]) for name in self._lists)
        if lengths and max(lengths) > _MOST_ITEMS:
            return None
        text = self._texts.get(lengths) or self._text(lengths, given)
        values = text.values(given)
        try:
            cursor = driver.execute(text.sql, values)
            rows = cursor.fetchall() if self.has_rows else ()
        except self._error as error:
            raise as_sqlalchemys(error, driver, self._dialect) from error
        return Answer(self._columns, self._converted(rows), cursor.rowcount)

    def send(self, driver: Driver, given: Parameters | None) -> bool:
        """Whether the driver took it; its answer is not asked for."""
        many = given if isinstance(given, Sequence) else [given or {}]
        if self._lists or not many:
            return False
        text = self._texts.get(()) or self._text((), many[0])
        try:
            driver.cursor().executemany(text.sql, [text.values(each) for each in many])
        except self._error as error:
            raise as_sqlalchemys(error, driver, self._dialect) from error
        return True

    def _run_many(self, driver: Driver, given: Sequence[Mapping[str, Any]]) -> Answer | None:
        if self._lists or not given:
            return None
        text = self._texts.get(()) or self._text((), given[0])
        try:
            if (rows := text.rows(len(given))) is None:
                cursor = driver.cursor()
                cursor.executemany(text.sql, [text.values(each) for each in given])
            else:
                values = [value for each in given for value in text.in_order(each)]
                cursor = driver.execute(rows, values)
        except self._error as error:
            raise as_sqlalchemys(error, driver, self._dialect) from error
        return Answer(self._columns, (), cursor.rowcount)

    def _text(self, lengths: tuple[int, ...], given: Mapping[str, Any]) -> _Text:
        compiled = self._compiled
        state = compiled.construct_expanded_state(given)
        items = {
            name: (of, n)
            for of, names in state.parameter_expansion.items()
            for n, name in enumerate(names)
        }
        constants: list[Any] = []
        places: list[_Place] = []
        by_name = None if compiled.positional else [*state.parameters]
        for name in by_name if by_name is not None else state.positiontup or ():
            of, item = items.get(name, (name, None))
            bind = compiled.binds[of]
            convert = bind.type.dialect_impl(self._dialect).bind_processor(self._dialect)
            if bind.required:
                places.append(_Place(len(constants), bind.key, item, convert))
                constants.append(None)
            else:
                constant = state.parameters[name]
                constants.append(convert(constant) if convert else constant)
        singles = [(at, name, to) for at, name, item, to in places if item is None and to]
        others = [each for each in places if each.item is not None or not each.convert]
        text = _Text(state.statement, constants, singles, others, by_name)
        self._texts[lengths] = text
        return text

    def _converted(self, rows: Sequence[tuple[Any, ...]]) -> Sequence[Sequence[Any]]:
        if not self._converts:
            return rows
        lists = [list(row) for row in rows]
        for row in lists:
            for n, convert in self._converts:
                row[n] = convert(row[n])
        return [tuple(row) for row in lists]


class Statements:
    """The prepared statements of one database, compiled as they are first run."""

    def __init__(self, dialect: sa.Dialect) -> None:
        self._dialect = dialect
        self._compiled: dict[sa.Executable, Compiled] = {}

    def of(self, statement: sa.Executable) -> Compiled | None:
        """None of one that is not prepared."""
        found = self._compiled.get(statement)
        if found is None and statement in _prepared:
            found = self._compiled[statement] = Compiled(statement, self._dialect)
        return found


def as_sqlalchemys(error: Exception, driver: object, dialect: sa.Dialect) -> Exception:
    """The driver's error as SQLAlchemy would raise it, without the parameters."""
    return cast(
        "Exception",
        sa.exc.DBAPIError.instance(
            None,
            None,
            error,
            _error_of(dialect),
            hide_parameters=True,
            # What cuts a connection has no code of PostgreSQL's: only the connection knows of it.
            connection_invalidated=bool(getattr(driver, "closed", False)),
            dialect=dialect,
        ),
    )


def _error_of(dialect: sa.Dialect) -> type[Exception]:
    """The base of all that its driver raises."""
    error: type[Exception] = cast("Any", dialect).loaded_dbapi.Error
    return error
