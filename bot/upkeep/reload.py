"""SIGHUP: kortex.toml read again, checked whole, and the parts that can change put in force.

All parts or none: each prepares first and may refuse; then the row is written; then all are put in
force in one go. What a part is, its owner says (`Reload.add`). A refused file changes nothing.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar

import structlog
from pydantic import JsonValue

from bot.actions.catalog import CatalogError
from bot.domain.audit import AuditEvent, AuditKind
from bot.ports.audit_log import AuditLog
from bot.ports.failures import StorageUnavailable
from bot.settings.masked import masked_json
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.settings.section import Section
from bot.settings.variables import Unset, newly_unset

_log = structlog.get_logger(__name__)
_BY = "operator"
_S = TypeVar("_S", bound=Section)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A part that was read and checked. `put_in_force` cannot fail; `told` goes into the row."""

    put_in_force: Callable[[], None]
    told: JsonValue = ""


# Reads and checks what the settings say of one part. Raises ConfigurationError, CatalogError.
Prepare = Callable[[Settings], Awaitable[Prepared]]
# Reads the file again, off the loop. Raises ConfigurationError.
ReadSettings = Callable[[], Settings]


@dataclass(frozen=True, slots=True)
class _Part:
    sections: frozenset[str]
    prepare: Prepare


class Reload:
    """The reloads of one process, one after the other. `worker`: which of several that share a port."""

    def __init__(
        self,
        settings: Settings,
        read: ReadSettings | None,
        audit: AuditLog,
        worker: int | None = None,
    ) -> None:
        self._in_force = settings
        self._masked = settings.secrets()
        self._read = read
        self._audit = audit
        self._by: dict[str, JsonValue] = {} if worker is None else {"worker": worker}
        self._parts: dict[str, _Part] = {}
        self._one_at_a_time = asyncio.Lock()
        self._tell: Callable[[Settings], None] = lambda _settings: None

    def add(self, name: str, sections: Collection[str], prepare: Prepare) -> None:
        """Ask that part at every reload; it answers for those tables of kortex.toml (`llm.tools`)."""
        self._parts[name] = _Part(frozenset(sections), prepare)

    def tell(self, finished: Callable[[Settings], None]) -> None:
        """Call `finished` after every reload, also a refused one, with the settings in force."""
        self._tell = finished

    async def run(self) -> bool:
        """Whether the file as it is now is in force. Every outcome is a row and a log line."""
        if self._read is None:
            _log.error("config.reload.refused", why="this process was not started from a file")
            return False
        return await self._taken(self._read)

    async def take(self, settings: Settings) -> bool:
        """The same with settings that were read already."""
        return await self._taken(lambda: settings)

    async def _taken(self, read: ReadSettings) -> bool:
        async with self._one_at_a_time:
            try:
                return await self._put_in_force(read)
            except StorageUnavailable as error:
                _log.error("config.reload.not_recorded", why=str(error), kept="what was in force")
                return False

    async def _put_in_force(self, read: ReadSettings) -> bool:
        try:
            settings = await asyncio.to_thread(read)
            self._check_secrets(settings)
            self._check_variables(settings)
            prepared = {name: await part.prepare(settings) for name, part in self._parts.items()}
        except (ConfigurationError, CatalogError) as error:
            _log.error("config.reload.refused", why=str(error), kept="what was in force")
            await self._record({"outcome": "refused", "why": str(error)})
            return False
        differs = changed(self._in_force, settings, self.sections)
        lacking = self._lacking(settings)
        waiting = sorted((differs | {each.key.split(".")[0] for each in lacking}) - self.sections)
        told: dict[str, JsonValue] = {
            "outcome": "in force",
            "changed": [*sorted(differs & self.sections)],
            "needs_restart": [*waiting],
            **({"not_in_environment": [_as_words(each) for each in lacking]} if lacking else {}),
            "parts": {name: each.told for name, each in prepared.items() if each.told},
            "digest": digest(settings),
        }
        await self._record(told)
        for each in prepared.values():
            each.put_in_force()
        self._in_force = with_tables(self._in_force, settings, self.sections)
        _log.info("config.reloaded", **told)
        return True

    @property
    def sections(self) -> frozenset[str]:
        """The tables that its parts answer for."""
        return frozenset(name for part in self._parts.values() for name in part.sections)

    def _check_secrets(self, settings: Settings) -> None:
        """The redactors know the secrets of the start; one they do not know would leave unmasked."""
        candidate = _with(self._in_force, settings, self.sections)
        if candidate.secrets() - self._masked:
            raise ConfigurationError(
                f"{', '.join(sorted(self.sections))} has a new secret; restart Kortex to use it"
            )

    def _check_variables(self, settings: Settings) -> None:
        """The environment stays as it was at the start: a new variable would be empty."""
        tables = self.sections
        lacking = [each for each in self._lacking(settings) if _is_within(each, tables)]
        if lacking:
            raise ConfigurationError("; ".join(_as_words(each) for each in lacking))

    def _lacking(self, settings: Settings) -> tuple[Unset, ...]:
        return newly_unset(self._in_force.unset, settings.unset)

    async def _record(self, body: dict[str, JsonValue]) -> None:
        await self._audit.append(AuditEvent(AuditKind.CONFIG_RELOADED, _BY, body | self._by))

    @asynccontextmanager
    async def at_each(self, asked: asyncio.Event) -> AsyncIterator[None]:
        """Run on every request, until the context ends; requests during a run cause one more."""

        async def serve() -> None:
            while await asked.wait():
                asked.clear()
                try:
                    await self.run()
                except Exception:  # noqa: BLE001 - a reload must not take the bot with it
                    _log.exception("config.reload.failed", kept="what was in force")
                self._tell(self._in_force)

        async with asyncio.TaskGroup() as background:
            serving = background.create_task(serve())
            try:
                yield
            finally:
                serving.cancel()


def _is_within(unset: Unset, tables: Collection[str]) -> bool:
    return any(unset.key.startswith(f"{table}.") for table in tables)


def _as_words(unset: Unset) -> str:
    return (
        f"{unset.key} is read from the environment variable {unset.variable}, "
        "which this process does not have: restart it with that variable"
    )


def with_tables(before: Settings, after: Settings, tables: Collection[str]) -> Settings:
    """The settings of before, with those tables of after."""
    kept = [each for each in before.unset if not _is_within(each, tables)]
    taken = [each for each in after.unset if _is_within(each, tables)]
    both = _with(before, after, tables)
    both.remember((*kept, *taken))
    return both


def changed(before: Settings, after: Settings, tables: Collection[str]) -> frozenset[str]:
    """Those of the tables that differ, and what differs beside them."""
    own = {name for name in tables if _at(before, name) != _at(after, name)}
    rest = _with(before, after, tables)
    names = type(before).model_fields
    return frozenset(own | {n for n in names if getattr(rest, n) != getattr(after, n)})


def _at(settings: Settings, table: str) -> object:
    return reduce(getattr, table.split("."), settings)


def _with(settings: Settings, other: Settings, tables: Collection[str]) -> Settings:
    for table in tables:
        settings = _put(settings, table.split("."), _at(other, table))
    return settings


def _put(section: _S, path: list[str], value: object) -> _S:
    name, *rest = path
    inner = _put(getattr(section, name), rest, value) if rest else value
    return section.model_copy(update={name: inner})


def started(settings: Settings, team: str) -> AuditEvent:
    """The row of a start: in which workspace, with which configuration."""
    return AuditEvent(AuditKind.STARTED, "kortex", {"team": team, "digest": digest(settings)})


def digest(settings: Settings) -> str:
    """SHA-256 of the configuration with its secrets masked: which one was in force, when."""
    return hashlib.sha256(masked_json(settings)).hexdigest()
