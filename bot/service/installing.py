"""Installation by other workspaces, put together: the two routes, and what they are judged by."""

from collections.abc import Sequence

import aiohttp
from aiohttp import web

from bot.app import Base
from bot.service.workspaces import Workspaces
from bot.slack.ingress.denials import Denials
from bot.store.installations import StoredOAuthStates


def install_routes(
    base: Base, workspaces: Workspaces, session: aiohttp.ClientSession
) -> Sequence[web.RouteDef]:
    """None without `[slack] client_id`."""
    if workspaces.installations is None:
        return ()
    # Slack's flow is a good part of its library, which nobody else needs.
    from bot.slack.ingress.oauth import Installing, InstallRules

    slack, home = base.settings.slack, workspaces.home.identity
    judged_by = InstallRules(
        slack.client_id,
        slack.client_secret.get_secret_value(),
        slack.api_base_url,
        slack.redirect_url,
        home.team,
        home.app_id,
        base.in_force.may_install,
    )
    installing = Installing(
        judged_by,
        workspaces.installations,
        StoredOAuthStates(base.stores.database),
        Denials(base.stores.audit),
        session,
        workspaces.installed,
    )
    return installing.routes()
