"""The kill switch as another workspace sees it: whether it is on, and nothing of who set it or why."""

from dataclasses import replace

from bot.domain.freeze import Freeze
from bot.ports.failures import StorageUnavailable
from bot.ports.proposals import KillSwitch


class OthersSwitch:
    """`KillSwitch`, which is home's to set: `/kortex freeze` is refused before it comes here."""

    def __init__(self, switch: KillSwitch) -> None:
        self._switch = switch

    async def freeze(self, by: str, reason: str) -> bool:  # noqa: ARG002 - the port's
        """Never done: this workspace may not stop the others."""
        return False

    async def lift(self, by: str) -> None:  # noqa: ARG002 - the port's
        """Raises StorageUnavailable: it stays as it is."""
        raise StorageUnavailable("only home's admins lift a freeze")

    async def sync(self) -> bool:
        """Nothing is kept here."""
        return True

    async def state(self) -> Freeze:
        """See `KillSwitch.state`."""
        return replace(await self._switch.state(), by="an operator", reason="")
