"""Whether an action may run now: the kill switch, freeze windows, the action's own quiet hours.

Asked when something is proposed, when Confirm is pressed, and twice before an order is sent. What
cannot be read stops it: nothing here ever opens by failing.
"""

from collections.abc import Sequence
from datetime import UTC

from bot.actions.catalog import ActionCatalog
from bot.domain.freeze import FreezeWindow, stopped_by_switch
from bot.ports.proposals import KillSwitch
from tools.errors import InvalidArguments


class FreezeJudge:
    """`bot.ports.proposals.FreezeState` by the switch and the configuration."""

    def __init__(
        self, switch: KillSwitch, catalog: ActionCatalog, windows: Sequence[FreezeWindow] = ()
    ) -> None:
        self.switch = switch
        self._catalog = catalog
        self._windows = windows

    async def refusal(self, action: str, product: str) -> str | None:
        freeze = await self.switch.state()
        if freeze.on:
            return stopped_by_switch(freeze)
        for window in self._windows:
            if window.holds(action, product, freeze.read_at):
                why = f" ({window.reason})" if window.reason else ""
                return f"it is frozen until {window.ends.astimezone(UTC):%Y-%m-%d %H:%M} UTC{why}"
        try:
            quiet = self._catalog.find(action, product).quiet_hours
        except InvalidArguments:
            return None  # no longer declared: another guard refuses it
        for hours in quiet:
            until = hours.until(freeze.read_at)
            if until is not None:
                return f"{action} has quiet hours until {until.astimezone(UTC):%a %H:%M} UTC"
        return None
