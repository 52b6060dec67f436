"""Which session somebody means who writes its id, its name, its thread's link or its id in `kortex chat`."""

from typing import Final

from bot.domain.ids import SessionId
from bot.slack.text.permalinks import thread_of
from bot.store.database import Database
from bot.store.dossiers import Dossiers

FORMS: Final = (
    "its id (session:TEAM:CHANNEL:THREAD), its name (incident-checkout: the newest of it), the link of "
    "a message in its thread, or the id that kortex chat and the page show"
)


async def session_option(database: Database, wanted: str) -> SessionId | None:
    """None where nothing fits. Raises StorageUnavailable."""
    dossiers = Dossiers(database)
    if thread := thread_of(wanted):
        return await dossiers.find_at(*thread)
    return await dossiers.find(wanted) or await dossiers.find_chat(wanted)
