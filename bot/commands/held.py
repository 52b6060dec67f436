"""The configuration that all workers of a service hold, kept by what starts them.

The file may have been edited since: a worker that is started again must not hold another one than
those beside it, or the service answers now by this one and now by that.
"""

from collections.abc import Collection

import structlog

from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.upkeep.reload import ReadSettings, changed, taken_over

_log = structlog.get_logger(__name__)


class Held:
    """`settings` are those of the start, with the tables of the last reload that was taken."""

    def __init__(self, settings: Settings, read: ReadSettings, tables: Collection[str]) -> None:
        self.settings = settings
        self._read = read
        self._tables = frozenset(tables)
        self._asked: Settings | None = None

    def asked(self) -> None:
        """A reload was asked for: the file as it is now is what the workers judge."""
        try:
            self._asked = self._read()
        except ConfigurationError:
            self._asked = None  # they refuse it too, and say why

    def taken(self) -> None:
        """A worker has it in force."""
        if self._asked is not None:
            self.settings = taken_over(self.settings, self._asked, self._tables)

    def tell(self) -> None:
        """Say in the log where the file says something else: for a worker that begins."""
        try:
            found = self._read()
        except ConfigurationError as error:
            _log.warning("config.file_not_usable", why=str(error), kept="what the service holds")
            return
        differs = changed(self.settings, found, self._tables)
        if differs:
            _log.warning(
                "config.file_differs",
                changed=sorted(differs & self._tables),
                needs_restart=sorted(differs - self._tables),
                kept="what the service holds",
            )
