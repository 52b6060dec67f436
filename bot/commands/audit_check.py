"""`kortex check`: is the audit trail sealed, and does it hold?"""

from bot.ports.failures import StorageUnavailable
from bot.reports.finding import Finding
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.wiring import rules
from bot.wiring.trail import verified


async def check_audit(settings: Settings) -> Finding:
    """The key, and whether all that was written so far holds."""
    keys = rules.audit_keys(settings)
    if not keys.keyed:
        weak = (
            "no [audit] key: the chain finds accidents, not forgery by who can write the database"
        )
        return Finding("audit", False, weak, configured=False)
    detail = f"sealed with the key {settings.audit.key_id!r}"
    try:
        found = await verified(settings)
    except (ConfigurationError, StorageUnavailable) as error:
        return Finding("audit", False, f"{detail}; the trail could not be read: {error}")
    if found is None:
        return Finding("audit", True, f"{detail}; the trail is empty")
    if found.bad is not None:
        what = f"the trail does not hold at row {found.bad.seq}: {found.bad.reason}"
        return Finding("audit", False, f"{what}; see `kortex audit verify`")
    return Finding("audit", True, f"{detail}; {found.rows} rows hold")
