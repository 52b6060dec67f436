"""A target in memory: what a dry run says, what would be touched, what state it is in."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from adapters.control_plane.port import ControlOrder, Objects, ProbeFailed
from bot.ports.failures import StorageUnavailable


@dataclass
class FakeProbe:
    """`failure` is raised by every reading while it is set."""

    preview: JsonValue = "v42 → v41"
    objects: Objects = field(default_factory=lambda: Objects(2, ("web-1", "web-2")))
    facts: Mapping[str, str] = field(default_factory=lambda: {"config_hash": "a1"})
    failure: ProbeFailed | None = None
    rehearsed: list[ControlOrder] = field(default_factory=list)

    async def dry_run(self, order: ControlOrder) -> JsonValue:
        self._fail()
        self.rehearsed.append(order)
        return self.preview

    async def count(self, order: ControlOrder) -> Objects:
        self._fail()
        return self.objects

    async def fingerprint(self, order: ControlOrder) -> Mapping[str, str]:
        self._fail()
        return self.facts

    def _fail(self) -> None:
        if self.failure is not None:
            raise self.failure


@dataclass
class FakeFreeze:
    """`words` is why nothing may be dispatched, if nothing may."""

    words: str = ""
    broken: bool = False  # it cannot be read

    async def refusal(self, action: str, product: str) -> str | None:
        if self.broken:
            raise StorageUnavailable("gone")
        return self.words or None
