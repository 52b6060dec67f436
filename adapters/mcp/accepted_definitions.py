"""The definitions that were accepted, by their hash, so that a change can be shown as a difference.

A file of this host that needs no trust: an entry counts only when its hash is its name."""

import asyncio
import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog

if TYPE_CHECKING:
    from adapters.mcp.definition import Definition


_MOST: Final = 500  # the newest are kept

_MAX_BYTES: Final = 16 * 1024 * 1024

_log = structlog.get_logger(__name__)


class AcceptedDefinitions:
    """Over one file. What cannot be read or written is a line in the log: only a diff is lost."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._one_at_a_time = asyncio.Lock()

    async def find(self, sha256: str) -> "Definition | None":
        known = await asyncio.to_thread(self._read)
        return _definition(known.get(sha256), sha256)

    async def keep(self, definitions: "Sequence[Definition]") -> None:
        async with self._one_at_a_time:
            await asyncio.to_thread(self._add, {each.sha256(): each for each in definitions})

    def _add(self, new: "Mapping[str, Definition]") -> None:
        known = self._read()
        if self._path is None or new.keys() <= known.keys():
            return
        for digest, each in new.items():
            known[digest] = {
                "name": each.name, "description": each.description, "schema": dict(each.schema),
            }  # fmt: skip
        newest = dict(list(known.items())[-_MOST:])
        beside = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            beside.write_text(json.dumps(newest, indent=1), encoding="utf-8")
            beside.replace(self._path)
        except OSError as error:
            _log.warning("mcp_definitions_not_kept", file=str(self._path), reason=error.strerror)
            with contextlib.suppress(OSError):
                beside.unlink()

    def _read(self) -> dict[str, Any]:
        try:
            if self._path is None or self._path.stat().st_size > _MAX_BYTES:
                return {}
            value = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}


def _definition(value: object, sha256: str) -> "Definition | None":
    match value:
        case {"name": str(name), "description": str(description), "schema": dict(schema)}:
            from adapters.mcp.definition import Definition

            found = Definition(name, description, schema)
            with contextlib.suppress(ValueError):
                return found if found.sha256() == sha256 else None
    return None
