"""`kortex check` on Slack: the tokens, other workspaces, and the channels of alerts."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from pydantic import BaseModel, ValidationError

from adapters.fault import fault_of
from bot.app import rules
from bot.app.rules import alert_wires
from bot.cli.check import time_budget
from bot.cli.check.installation import InstallationProbe
from bot.cli.check.mending import mend_of_slack
from bot.domain.alerts import AlertRule
from bot.domain.channel import rule_for
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.ports.installations import Installed
from bot.privacy.token_seal import SealUnavailable, TokenSeal
from bot.reports.finding import Finding
from bot.settings.model import Settings
from bot.slack.api.calls import SlackCalls
from bot.slack.api.web_api import create_api, slack_session
from bot.slack.ingress.access import SlackAccess, StartupError
from bot.slack.ingress.payloads import SlackIdentity
from bot.slack.ingress.startup import check_shape, check_slack
from bot.store.database import Database
from bot.store.installations import StoredInstallations
from bot.web.alerts import PATH

MOST_AT_ONCE = 8  # auth.test is answered in a tenth of a second; hundreds at once are not
_ID = (
    "Compare the channel's ID: in Slack under its name, About; in a local workspace in the "
    "channel's menu. Invite the bot to a private channel."
)
_SECRETS = ("alertmanager_token", "grafana_token", "pagerduty_secret", "cloudevents_token")


@asynccontextmanager
async def slack_calls(settings: Settings) -> AsyncIterator[SlackCalls]:
    """Calls as the configured bot, each within the time that is left after the tokens' check."""
    token = settings.slack.bot_token.get_secret_value()
    async with slack_session() as session:
        limit_s = time_budget.within(time_budget.AFTER_S)
        yield create_api(token, settings.slack.api_base_url, session, limit_s)


async def check_tokens(settings: Settings) -> tuple[Sequence[Finding], SlackIdentity | None]:
    access = rules.slack_access(settings)
    if known := token_shape(access):
        return known, None
    try:
        async with asyncio.timeout(time_budget.within(time_budget.SHARED_S)):
            identity = await check_slack(access)
    except StartupError as error:
        fault = fault_of(error)
        mend = "" if fault else error.mend
        return [Finding("slack", False, error.what, mend=mend, fault=fault)], None
    except TimeoutError:
        return [time_budget.silent("slack", time_budget.SHARED_S)], None
    return [Finding("slack", True, f"{access.mode} mode, workspace {identity.team}")], identity


def token_shape(access: SlackAccess) -> Sequence[Finding]:
    if not any(v.strip() for v in (access.bot_token, access.app_token, access.signing_secret)):
        words = "no tokens yet: `kortex ask` works without them, `kortex run` does not start"
        return [Finding("slack", False, words, warning=True)]
    try:
        check_shape(access)
    except StartupError as error:
        return [Finding("slack", False, str(error))]
    return []


async def check_workspaces(asked: InstallationProbe) -> Sequence[Finding]:
    """One row for all workspaces, and one for each with a problem. No token is sealed again."""
    settings = asked.of.settings
    if not settings.slack.client_id:
        words = "no other workspace may install the app"
        return [Finding("workspaces", False, words, configured=False)]
    try:
        seal = TokenSeal(settings.slack.seal_keys)
    except SealUnavailable as error:
        return [Finding("workspaces", False, f"slack.client_id: {error}")]
    if any(each.fails for each in await asked.database()):
        return []  # the database has its row
    database = await Database.open(settings.database.url.get_secret_value())
    try:
        stored = StoredInstallations(database, seal)
        expected, readable = await stored.revisions(), await stored.all()
    finally:
        await database.close()
    sealed = expected.keys() - {each.team for each in readable}
    unreadable = [
        Finding(f"workspace {team}", False, "no key of slack.token_keys decrypts its token")
        for team in sorted(sealed)
    ]
    refused = await _refused(settings, readable)
    words = f"{len(expected)} installed, {len(readable) - len(refused)} answer"
    return [Finding("workspaces", True, words), *unreadable, *refused]


async def _refused(settings: Settings, installed: Sequence[Installed]) -> list[Finding]:
    gate = asyncio.Semaphore(MOST_AT_ONCE)
    async with slack_session() as session:

        async def one(each: Installed) -> Finding | None:
            api = create_api(
                each.token,
                settings.slack.api_base_url,
                session,
                time_budget.within(time_budget.AFTER_S),
            )
            try:
                async with gate:
                    await api.call("auth.test")
            except (SurfaceFailed, SurfaceGone) as error:
                mend = mend_of_slack(error)
                return Finding(f"workspace {each.team}", False, str(error), mend=mend)
            return None

        told = await asyncio.gather(*map(one, installed))
    return [each for each in told if each is not None]


class _Channel(BaseModel):
    name: str = ""
    is_member: bool = False
    is_archived: bool = False


class _Answer(BaseModel):
    channel: _Channel


async def check_alerts(asked: InstallationProbe) -> Sequence[Finding]:
    return await alert_findings(asked.of.settings, (await asked.slack())[1])


async def alert_findings(settings: Settings, identity: SlackIdentity | None) -> list[Finding]:
    """One finding for the alert endpoints and one for each rule. Without an identity Slack is not asked."""
    found = [_alert_routes(settings), *_without_tools(settings)]
    if identity is None or not settings.alerts:
        return found
    async with slack_calls(settings) as api:
        every = (_rule(settings, each, api) for each in rules.alert_rules(settings))
        return [*found, *await asyncio.gather(*every)]


def _alert_routes(settings: Settings) -> Finding:
    secrets = [name for name in _SECRETS if getattr(settings.http, name).get_secret_value()]
    if not settings.alerts:
        if not secrets:
            return Finding("alerts", False, "no [[alerts]]", configured=False)
        names = " and ".join(secrets)
        words = f"http.{names} is set, but there is no [[alerts]] rule: every alert is dropped"
        return Finding("alerts", False, words, warning=True)
    open_to = [PATH + wire.source for wire in alert_wires(settings)]
    if not open_to:
        words = f"no sender can be authenticated: set one of http.{', http.'.join(_SECRETS)}"
        return Finding("alerts", False, words)
    limits = settings.policy.alerts
    most = f"at most {limits.threads_per_hour} threads and {limits.investigations_per_hour}"
    return Finding("alerts", True, f"taken at {', '.join(open_to)}; {most} investigations an hour")


def _without_tools(settings: Settings) -> list[Finding]:
    if not settings.alerts or not settings.policy.roles or "*" in settings.policy.roles:
        return []
    words = 'an alert has no role, and [policy.roles."*"] allows it no tool'
    return [Finding("alerts", False, words, warning=True)]


async def postable(part: str, channel_id: str, api: SlackCalls) -> str | Finding:
    """The channel's name, or why the bot cannot post there."""
    try:
        answer = await api.call("conversations.info", channel=channel_id)
        channel = _Answer.model_validate(answer).channel
    except (SurfaceGone, SurfaceFailed, TimeoutError, ValidationError) as error:
        why = str(error) if isinstance(error, SurfaceGone | SurfaceFailed) else "no answer"
        words = f"{channel_id} cannot be read: {why}"
        return Finding(part, False, words, mend=mend_of_slack(error) or _ID)
    if channel.is_archived or not channel.is_member:
        why = "it is archived" if channel.is_archived else "the bot is not a member: invite it"
        return Finding(part, False, f"#{channel.name} cannot be posted in: {why}")
    return channel.name


async def _rule(settings: Settings, rule: AlertRule, api: SlackCalls) -> Finding:
    part = f"alerts {rule.name}"
    name = await postable(part, rule.channel, api)
    if isinstance(name, Finding):
        return name
    products = rule_for(rules.channel_rules(settings), name).products
    if rule.product and products and rule.product not in products:
        words = f"{rule.product} is not a product of #{name}, so alerts of it are not investigated there"
        return Finding(part, False, words, warning=True)
    return Finding(part, True, _said(rule, name, products))


def _said(rule: AlertRule, channel: str, products: Sequence[str]) -> str:
    tests = ", ".join(rule.match) or "any labels"
    about = (
        rule.product
        or f"the product in its labels{' (' + ', '.join(products) + ')' if products else ''}"
    )
    return f"{tests} → #{channel}, about {about}"
