"""`kortex check` on roles: does each rota answer, and can a person confirm each action?

People are looked up as at a click. No message is sent.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from itertools import product

from adapters.fault import fault_of
from adapters.on_call.port import OnCall
from bot.actions.catalog import ActionRule
from bot.app import rules
from bot.app.live_config import role_members, roles_in
from bot.cli.check.installation import InstallationProbe
from bot.cli.check.slack import slack_calls
from bot.cli.check.time_budget import probed
from bot.domain.channel import ChannelRule
from bot.domain.tenancy import HOME
from bot.reports.finding import Finding
from bot.settings.model import Settings
from bot.slack.ingress.payloads import SlackIdentity
from bot.slack.roles.directory import OnCallUnreadable, OnDutyDirectory, SlackRoleDirectory

Holders = Mapping[str, frozenset[str]]


async def check_roles(asked: InstallationProbe) -> Sequence[Finding]:
    """Each rota, each role that fails, and where too few people may confirm."""
    return await _roles(asked.of.settings, (await asked.slack())[1])


async def _roles(settings: Settings, identity: SlackIdentity | None) -> list[Finding]:
    """One row for each rota and each failed role, and a warning where too few people may confirm.

    Without an identity Slack is not asked. Of a role of another workspace only the rota is read: its
    ids mean nothing in this workspace.
    """
    every = await asyncio.to_thread(role_members, settings)
    roles = roles_in(every, HOME)
    rotas = {name: role.on_call for name, role in every.items() if role.on_call is not None}
    if identity is None:
        return await asyncio.gather(*(_rota(name, rota) for name, rota in rotas.items()))
    async with slack_calls(settings) as api:
        duty = OnDutyDirectory(api, time.monotonic)
        on_duty = (
            _on_duty(name, rota, duty) if name in roles else _rota(name, rota)
            for name, rota in rotas.items()
        )
        findings = await asyncio.gather(*on_duty)
        directory = SlackRoleDirectory(api, identity.team, roles, time.monotonic)
        found = dict(zip(roles, await asyncio.gather(*map(directory.holders, roles)), strict=True))
    findings += [
        Finding(f"role {name}", False, unread)
        for name, (_, unread) in found.items()
        if unread and name not in rotas
    ]
    return findings + _warnings(
        settings, {name: people for name, (people, unread) in found.items() if not unread}
    )


async def _rota(name: str, rota: OnCall) -> Finding:
    async def words() -> str:
        return f"{len(await rota.people())} on call now"

    return await probed(f"on call {name}", words)


async def _on_duty(name: str, rota: OnCall, duty: OnDutyDirectory) -> Finding:
    part = f"on call {name}"
    try:
        found = await duty.now(rota, 0.0)
    except OnCallUnreadable as error:
        return Finding(part, False, str(error), fault=fault_of(error))
    if not found.whole:
        return Finding(
            part,
            False,
            "Slack does not find the users of these addresses: is users:read.email granted?",
        )
    lost = found.without_account
    detail = f"{len(found.users) + lost} on call now"
    if lost:
        return Finding(part, False, f"{detail}, {lost} without a Slack account", warning=True)
    return Finding(part, True, detail)


def _warnings(settings: Settings, holders: Holders) -> list[Finding]:
    channels = [
        c for c in rules.channel_rules(settings) if c.confirm and holders.keys() >= {*c.confirm}
    ]
    actions = [a for a in rules.action_rules(settings) if holders.keys() >= {*a.confirm}]
    held = [c for c in channels if _people(c.confirm, holders)]
    alone = [
        Finding(f"channel {c.match}", False, "its confirm roles have no members now", warning=True)
        for c in channels
        if c not in held
    ]
    return alone + [
        Finding(f"action {action.name}", False, _too_few(channel, action, able), warning=True)
        for channel, action in product(held, actions)
        if _meet(channel, action)
        and len(able := _able(channel, action, holders)) < action.approvals
    ]


def _meet(channel: ChannelRule, action: ActionRule) -> bool:
    return not channel.products or any(map(action.fits, channel.products))


def _able(channel: ChannelRule, action: ActionRule, holders: Holders) -> frozenset[str]:
    people = _people(channel.confirm, holders)
    return people & _people(action.confirm, holders) if action.confirm else people


def _people(roles: Sequence[str], holders: Holders) -> frozenset[str]:
    return frozenset().union(*(holders.get(role, frozenset()) for role in roles))


def _too_few(channel: ChannelRule, action: ActionRule, able: frozenset[str]) -> str:
    where = f"in channels {channel.match}"
    also = f" and also in {' or '.join(action.confirm)}" if action.confirm else ""
    whom = f"{' or '.join(channel.confirm)}{also}"
    if not able:
        return f"no one can confirm it {where}: no one is in {whom} now"
    return f"it needs {action.approvals} people {where}, but only {len(able)} in {whom} can confirm it now"
