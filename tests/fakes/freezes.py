"""Freezes and the switch, set by a test."""

from datetime import UTC, datetime

from bot.domain.freeze import Freeze
from bot.ports.failures import StorageUnavailable


class FakeFreezes:
    """`FreezeState`: `reason` stops everything; `broken` cannot be read."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self.broken = False

    async def refusal(self, action: str, product: str) -> str | None:
        if self.broken:
            raise StorageUnavailable("gone")
        return self.reason


class FakeSwitch:
    """`KillSwitch` in memory; `broken` is a database that cannot be used."""

    def __init__(self) -> None:
        self.frozen = False
        self.broken = False
        self.by = self.reason = ""
        self.now = datetime(2026, 4, 7, 14, 35, tzinfo=UTC)

    async def freeze(self, by: str, reason: str) -> bool:
        self.frozen, self.by, self.reason = True, by, reason
        return not self.broken

    async def lift(self, by: str) -> None:
        if self.broken:
            raise StorageUnavailable("read-only")
        self.frozen = False

    async def state(self) -> Freeze:
        return Freeze(self.frozen, self.now, self.by, self.reason, self.now)

    async def sync(self) -> bool:
        return not self.broken
