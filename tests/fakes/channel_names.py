"""Names of channels, set by a test, and a store of them in memory."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from bot.domain.channel import UNKNOWN, KeptName
from bot.domain.ids import Place
from bot.ports.failures import StorageUnavailable


@dataclass
class FakeNames:
    """`ChannelNames` that says `name` to everybody; `later` is said from the next question on."""

    name: str = "ops"
    later: list[str] = field(default_factory=list)
    broken: bool = False
    patience: list[float] = field(default_factory=list)

    async def for_asking(self, place: Place, patience_s: float = 0.0) -> str:
        self.patience.append(patience_s)
        return await self.for_deciding(place)

    async def for_deciding(self, place: Place) -> str:
        if self.broken:
            raise StorageUnavailable("gone")
        said = self.name
        self.name = self.later.pop(0) if self.later else self.name
        return said


@dataclass
class MemoryNames:
    """`NameStore`; `now` is the database's clock. `broken` cannot be used."""

    rows: dict[tuple[str, str], tuple[str, datetime]] = field(default_factory=dict)
    now: datetime = datetime(2026, 4, 7, 14, 35, tzinfo=UTC)
    broken: bool = False

    async def get(self, place: Place) -> KeptName | None:
        self._check()
        name, at = self.rows.get((place.team, place.channel), (UNKNOWN, None))
        return None if at is None else KeptName(name, at, (self.now - at).total_seconds())

    async def keep(self, place: Place, name: str, instead_of: KeptName | None) -> bool:
        self._check()
        before = None if instead_of is None else (instead_of.name, instead_of.written_at)
        if self.rows.get((place.team, place.channel)) != before:
            return False
        self.rows[place.team, place.channel] = name, self.now
        return True

    async def forget(self, place: Place) -> None:
        self._check()
        self.rows[place.team, place.channel] = UNKNOWN, self.now

    def later(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)

    def _check(self) -> None:
        if self.broken:
            raise StorageUnavailable("database is locked")
