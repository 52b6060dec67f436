"""How a database would answer a statement, and whether it would read all of what grows for it."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from bot.store.columns import metadata
from tests.grown import GROWING

# Sorted or read in memory, so many rows cost less than a statement's way to the database and back.
FEW_ROWS: Final = 1_000
_NO_QUERY: Final = re.compile(
    r"\s*(PRAGMA|BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|SET|SHOW|CREATE|ALTER|DROP)\b",
    re.IGNORECASE,
)
_ALIASES: Final = {"ending": "workflow_status"}
# What they hold is owed, and goes when it is paid: to read one whole is to read what is due. The
# engine's are of workflows that have not ended.
_OWED: Final = frozenset(
    {
        "idx_workflow_status_pending",
        "idx_workflow_status_delayed",
        "idx_workflow_status_deadline",
        "idx_workflow_status_in_flight_v2",
    }
    | {
        str(index.name)
        for table in metadata.tables.values()
        for index in table.indexes
        if index.dialect_options["sqlite"]["where"] is not None
    }
)

Explain = Callable[[sa.Connection, str, Any], Sequence[str]]


def readings(
    connection: sa.Connection, statements: Mapping[str, Any], explain: Explain
) -> Iterator[tuple[str, Sequence[str]]]:
    """Each statement in one line with the readings that grow with the past, if it has any."""
    for text, given in statements.items():
        if _NO_QUERY.match(text) is None and (found := explain(connection, text, given)):
            yield " ".join(text.split()), found


def in_sqlite(connection: sa.Connection, text: str, given: Any) -> Sequence[str]:
    """Scans of tables that grow, and sorts of more than ties beside one of them."""
    plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", given)]
    touched = [line for line in plan if _table_of(line) in GROWING]
    scans = [line for line in touched if _reads_all(line)]
    sorts = [line for line in plan if re.match(r"(USE|UNION USING) TEMP B-TREE(?!.*RIGHT)", line)]
    return [*scans, *(sorts if touched else [])]


def _table_of(line: str) -> str:
    found = re.match(r"(?:SCAN|SEARCH) (?:\w+\.)?(\w+?)(?:_\d+)?(?= |$)", line)
    name = found[1] if found else ""
    return _ALIASES.get(name, name)


def _reads_all(line: str) -> bool:
    index = re.search(r"INDEX (\w+)", line)
    if line.startswith("SCAN"):
        return index is None or index[1] not in _OWED
    return "USING" not in line  # min() and max() without an index: a scan by another name


def in_postgresql(connection: sa.Connection, text: str, given: Any) -> Sequence[str]:
    """Scans of tables that grow, also by an index that is read from end to end, and large sorts."""
    found = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {text}", given).scalar_one()
    plan = found if isinstance(found, list) else json.loads(found)
    return list(_readings_of(plan[0]["Plan"], is_limited=False))


def _readings_of(node: Mapping[str, Any], *, is_limited: bool) -> Iterator[str]:
    kind, table, index = (
        str(node.get(key, "")) for key in ("Node Type", "Relation Name", "Index Name")
    )
    by_order = kind.startswith("Index") and "Index Cond" not in node and index not in _OWED
    if (kind == "Seq Scan" or (by_order and not is_limited)) and table in GROWING:
        yield f"{kind} {table} {index}".strip()
    if kind == "Sort" and node["Plan Rows"] > FEW_ROWS:
        yield f"Sort of {node['Plan Rows']} rows"
    # What follows an index's order ends with the limit; what sorts or gathers first does not.
    goes_on = kind == "Limit" or (is_limited and kind in {"Nested Loop", "Incremental Sort"})
    for each in node.get("Plans", ()):
        yield from _readings_of(each, is_limited=goes_on)
