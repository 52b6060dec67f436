"""`/kortex`: what an operator may ask privately. Admin answers are audited before they are given."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias, assert_never

import structlog

from bot.chat.budget_report import budget_report
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.chart_request import Charted, ChartRequest
from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, TurnId, UserId
from bot.ports.failures import StorageUnavailable
from bot.slack.ingress.payloads import SlashCommand
from bot.slack.listeners import replies
from bot.slack.listeners.admin_answers import (
    audit_answer,
    freeze_answer,
    providers_lines,
    tools_answer,
)
from bot.slack.listeners.background_tasks import BackgroundTasks
from bot.slack.listeners.budget_answer import budget_answer, quality_answer
from bot.slack.listeners.message_intake import AskLimiter
from bot.slack.listeners.ports import IngressPorts, IngressSettings
from bot.slack.listeners.status import Status
from bot.slack.roles.directory import CANNOT_CHECK, NO_ROTA
from bot.slack.text.blocks import Part
from bot.slack.text.mrkdwn import escape, escape_within, inline, visible
from bot.slack.text.plain import plain_text

_log = structlog.stdlib.get_logger(__name__)
COMMAND = "/kortex"


class Subcommand(StrEnum):
    """The sub-commands of `/kortex`, in the order of the manifest's usage hint."""

    HELP = "help"
    CHART = "chart"
    STATUS = "status"
    SESSIONS = "sessions"
    PROPOSALS = "proposals"
    BUDGET = "budget"
    PROVIDERS = "providers"
    TOOLS = "tools"
    QUALITY = "quality"
    AUDIT = "audit"
    FREEZE = "freeze"


_Administered: TypeAlias = Literal[
    Subcommand.BUDGET,
    Subcommand.PROVIDERS,
    Subcommand.TOOLS,
    Subcommand.QUALITY,
    Subcommand.AUDIT,
    Subcommand.FREEZE,
]


DEFAULT_RANGE = "last 1h"
# Less than the limit of a background task, so that the user gets a reply.
_PATIENCE_S = 9.0


@dataclass(slots=True, eq=False, repr=False)
class ChartCommand:
    """`/kortex chart`: replies at once; the chart follows, visible to the asker alone."""

    ports: IngressPorts
    background: BackgroundTasks
    limiter: AskLimiter | None = None
    patience_s: float = _PATIENCE_S

    async def answer(self, command: SlashCommand) -> str:
        """The immediate reply, in mrkdwn."""
        person = Person(TeamId(command.team_id), UserId(command.user_id))
        refusal = await self.ports.roles.outsider(person)
        try:
            await self.ports.audit.append(_audited(command, "chart", allowed=refusal is None))
        except StorageUnavailable:
            return replies.CANNOT_AUDIT
        if refusal is not None:
            return escape(refusal)
        _, *given = command.text.split()
        if len(given) < 2:
            return replies.CHART_USAGE
        asked = TurnId(f"chart:{command.trigger_id}")
        if self.limiter is not None and not self.limiter.admits(person, asked):
            return replies.TOO_MANY_CHARTS
        metric, product, *rest = given
        place = Place(person.team, ChannelId(command.channel_id), MessageTs(""))
        time_range = " ".join(rest) or DEFAULT_RANGE
        request = ChartRequest(person, place, metric, product, time_range)
        self.background.run("chart", self._show(request))
        return replies.CHART_COMES.format(metric=inline(metric, 80), product=inline(product, 80))

    async def _show(self, request: ChartRequest) -> None:
        try:
            async with asyncio.timeout(self.patience_s):
                made = await self.ports.chart(request)
        except TimeoutError:
            made = Charted(replies.CHART_TOO_SLOW)
        except StorageUnavailable:
            made = Charted(replies.CANNOT_READ)
        charts = [made.chart] if made.chart else []
        await self.ports.surface.whisper(request.place, request.person.user, made.text, charts)


def for_admins(wanted: str, roles: Sequence[str], refusal: str) -> str:
    """The refusal for people who are not admins: "Only admins can see the budget: @sre-lead"."""
    named = ", ".join(f"@{escape_within(visible(role), 60)}" for role in roles)
    told = f"{replies.FOR_ADMINS[wanted]}: {named or replies.NO_ADMINS}."
    return f"{told} {replies.NOT_CHECKED}" if refusal in (CANNOT_CHECK, NO_ROTA) else told


class Commands:
    """Private answers in Slack's mrkdwn."""

    def __init__(
        self, settings: IngressSettings, ports: IngressPorts, charts: ChartCommand
    ) -> None:
        self._settings = settings
        self._ports = ports
        self._charts = charts
        self._status = Status(ports, settings.identity.team, settings.identity.site)

    async def answer(self, command: SlashCommand) -> Part:
        """The private answer. Never raises for a store that is away."""
        answer = await self._answer(command)
        return answer if isinstance(answer, Part) else Part(answer, ())

    async def _answer(self, command: SlashCommand) -> str | Part:
        identity = self._settings.identity
        if not identity.is_addressee(command.team_id, command.api_app_id):
            return escape(replies.EXTERNAL)
        # Slack links what people type here too: `checkout.io` arrives as a link.
        typed = plain_text(command.text, lambda user: f"<@{user}>")
        command = command.model_copy(update={"text": typed})
        wanted = _subcommand(command.text)
        if wanted is None:
            unknown = escape(visible(command.text.strip())[:80])
            return f"There is no `{COMMAND} {unknown.replace('`', '´')}`.\n{replies.COMMAND_HELP}"
        person = Person(TeamId(command.team_id), UserId(command.user_id))
        try:
            match wanted:
                case Subcommand.HELP:
                    return f"{escape(replies.HELP)}\n{replies.COMMAND_HELP}"
                case Subcommand.CHART:
                    return await self._charts.answer(command)
                case Subcommand.STATUS:
                    return await self._status.status(person)
                case Subcommand.SESSIONS:
                    return await self._status.sessions(person)
                case Subcommand.PROPOSALS:
                    return await self._status.proposals(person)
                case Subcommand.FREEZE if not self._settings.may_freeze:
                    return replies.NOT_HERE
                case _:
                    return await self._administer(wanted, command, person)
        except StorageUnavailable:
            return replies.CANNOT_READ

    async def _administer(
        self, wanted: _Administered, command: SlashCommand, person: Person
    ) -> str | Part:
        refusal = await self._ports.roles.refusal(person, self._settings.admin_roles)
        if wanted is Subcommand.FREEZE and refusal is None:
            arguments = command.text.strip()[len(wanted) :]
            return await freeze_answer(self._ports.switch, command.user_id, arguments)
        try:
            event = _audited(command, wanted.value, allowed=refusal is None)
            await self._ports.audit.append(event)
        except StorageUnavailable:
            return replies.CANNOT_AUDIT
        if refusal is not None:
            return for_admins(wanted, self._settings.admin_roles, refusal)
        match wanted:
            case Subcommand.BUDGET:
                report = await budget_report(self._ports.ledger, self._settings.budget)
                return budget_answer(report)
            case Subcommand.PROVIDERS:
                return "\n".join(providers_lines(await self._ports.providers()))
            case Subcommand.TOOLS:
                return tools_answer(self._ports.tools())
            case Subcommand.QUALITY:
                return await quality_answer(
                    self._ports.feedback, self._ports.channel_access, person
                )
            case Subcommand.AUDIT:
                return await audit_answer(self._ports.audit_reader)
            case Subcommand.FREEZE:
                return replies.COMMAND_HELP
            case _:
                assert_never(wanted)


def _audited(command: SlashCommand, name: str, *, allowed: bool) -> AuditEvent:
    """The row of a command, one for each time that it is sent."""
    return AuditEvent(
        AuditKind.ADMIN_COMMAND,
        UserId(command.user_id),
        {"command": name, "allowed": allowed, "channel": command.channel_id},
        key=f"admin.command:{command.trigger_id}" if command.trigger_id else "",
    )


def _subcommand(text: str) -> Subcommand | None:
    whole = text.strip().casefold() or Subcommand.HELP
    first = whole.split(maxsplit=1)[0]
    if first in (Subcommand.FREEZE, Subcommand.CHART):  # those with arguments
        return Subcommand(first)
    return next((each for each in Subcommand if each == whole), None)
