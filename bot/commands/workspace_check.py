"""`kortex check` on workspaces that installed the app: is each token readable, and does Slack take it?"""

import asyncio
from collections.abc import Sequence

from bot.commands.installation import Asked
from bot.commands.patience import AFTER_S, within
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.ports.installations import Installed
from bot.privacy.token_seal import SealUnavailable, TokenSeal
from bot.reports.finding import Finding
from bot.reports.mending import mend_of_slack
from bot.settings.model import Settings
from bot.slack.api.session import slack_session
from bot.slack.api.web_api import create_api
from bot.store.database import Database
from bot.store.installations import StoredInstallations

MOST_AT_ONCE = 8  # auth.test is answered in a tenth of a second; hundreds at once are not


async def check_workspaces(asked: Asked) -> Sequence[Finding]:
    """One finding for all, and one for each that is not well. Nothing is sealed anew."""
    settings = asked.of.settings
    if not settings.slack.client_id:
        words = "no other workspace may install the app"
        return [Finding("workspaces", False, words, configured=False)]
    try:
        seal = TokenSeal(settings.slack.seal_keys)
    except SealUnavailable as error:
        return [Finding("workspaces", False, f"slack.client_id: {error}")]
    if any(each.fails for each in await asked.database()):
        return []  # which is told
    database = await Database.open(settings.database.url.get_secret_value())
    try:
        stored = StoredInstallations(database, seal)
        expected, readable = await stored.revisions(), await stored.all()
    finally:
        await database.close()
    sealed = expected.keys() - {each.team for each in readable}
    unreadable = [
        Finding(f"workspace {team}", False, "no key of slack.token_keys opens its token")
        for team in sorted(sealed)
    ]
    refused = await _refused(settings, readable)
    words = f"{len(expected)} installed, {len(readable) - len(refused)} answer"
    return [Finding("workspaces", True, words), *unreadable, *refused]


async def _refused(settings: Settings, installed: Sequence[Installed]) -> list[Finding]:
    gate = asyncio.Semaphore(MOST_AT_ONCE)
    async with slack_session() as session:

        async def one(each: Installed) -> Finding | None:
            api = create_api(each.token, settings.slack.api_base_url, session, within(AFTER_S))
            try:
                async with gate:
                    await api.call("auth.test")
            except (SurfaceFailed, SurfaceGone) as error:
                mend = mend_of_slack(error)
                return Finding(f"workspace {each.team}", False, str(error), mend=mend)
            return None

        told = await asyncio.gather(*map(one, installed))
    return [each for each in told if each is not None]
