"""The engine's records of work that has ended: what was asked, said and read, until it is deleted."""

from datetime import UTC, datetime, timedelta
from typing import Final

from dbos import DBOS

_ENDED: Final = ["SUCCESS", "ERROR", "CANCELLED"]
_AT_ONCE: Final = 1000  # the next sweep goes on


async def forget_ended(older_than_s: float) -> int:
    """Delete the records of work that was started before and has ended; returns how many.

    Work whose record is gone would run again if it were asked for again. Needs a running engine.
    """
    before = datetime.now(UTC) - timedelta(seconds=older_than_s)
    ended = await DBOS.list_workflows_async(
        status=_ENDED,
        end_time=before.isoformat(),
        limit=_AT_ONCE,
        load_input=False,
        load_output=False,
    )
    await DBOS.delete_workflows_async([w.workflow_id for w in ended])
    return len(ended)
