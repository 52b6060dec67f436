"""Writes a case as a folder of files: whole or not at all, never over another one."""

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

import orjson
from pydantic import JsonValue

from adapters.recorded.packs.archive import CASE_FILE, MAX_CASE_BYTES, TRUTH_FILE
from adapters.recorded.packs.schema import MAX_LINE_BYTES
from tools.output import json_bytes

Redact = Callable[[JsonValue], JsonValue]
Row = Mapping[str, JsonValue]

MOST_BYTES: Final = MAX_CASE_BYTES // 2  # of a case, so that it can always be read again
TRUTH: Final[Row] = {
    "healthy": None,
    "culprit": [],
    "kind": "",
    "mechanism_words": [],
    "forbidden": [],
    "how": (
        "Fill in healthy (true or false), culprit (every right product name) and kind (a word of yours)."
        " mechanism_words are groups such as [['pool', 'connections']]; an answer needs one of each."
        " forbidden are words that make it wrong. While healthy is null the case is left out."
    ),
}


class NotWritten(Exception):
    """The case was not written; the text says why. Nothing is left of it."""


@dataclass(frozen=True, slots=True)
class WrittenCase:
    """The content of a case. `rows` and `documents` are by file name."""

    id: str
    set: str
    asked: str
    now: datetime
    products: Sequence[str]
    rows: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    documents: Mapping[str, JsonValue] = field(default_factory=dict)
    notes: Sequence[str] = ()


def write_case(
    folder: Path, case: WrittenCase, redact: Redact, most_bytes: int = MOST_BYTES
) -> list[str]:
    """Write it, redacted, for its owner's eyes. Returns what did not fit. Raises NotWritten.

    What `redact` raises leaves nothing written either.
    """
    if folder.exists():
        raise NotWritten(f"{folder}: already exists; name another with --output")
    part = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part.mkdir(mode=0o700)
    except OSError as error:
        raise NotWritten(f"{folder}: cannot be written ({error.strerror})") from error
    try:
        left_out = _write_all(part, case, redact, most_bytes)
        part.rename(folder)
    except OSError as error:
        raise NotWritten(f"{folder}: cannot be written ({error.strerror})") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return left_out


def _write_all(part: Path, case: WrittenCase, redact: Redact, most_bytes: int) -> list[str]:
    left_out: list[str] = []
    size = 0
    for name, document in case.documents.items():
        size += (part / name).write_bytes(json_bytes(redact(document), orjson.OPT_INDENT_2))
    for name, rows in case.rows.items():
        kept = 0
        with (part / name).open("wb") as file:
            for row in rows:
                line = json_bytes(_redacted(row, redact)) + b"\n"
                if size + len(line) > most_bytes:
                    break
                if len(line) <= MAX_LINE_BYTES:
                    size += file.write(line)
                    kept += 1
        if kept < len(rows):
            left_out.append(f"{name}: {len(rows) - kept} of {len(rows)} lines did not fit")
    about: dict[str, JsonValue] = {
        "id": case.id,
        "set": case.set,
        "asked": case.asked,
        "now": case.now.isoformat(),
        "products": list(case.products),
        "notes": [*case.notes, *left_out],
    }
    (part / CASE_FILE).write_text(json.dumps(redact(about), indent=2, ensure_ascii=False) + "\n")
    (part / TRUTH_FILE).write_text(json.dumps(TRUTH, indent=2) + "\n")
    return left_out


def _redacted(row: Row, redact: Redact) -> JsonValue:
    """Numbers as they are: a day of samples is not read through for secrets."""
    texts = {name: value for name, value in row.items() if name != "points"}
    found = redact(texts)
    assert isinstance(found, dict)  # noqa: S101 - a value of the same shape
    return {**found, "points": row["points"]} if "points" in row else found
