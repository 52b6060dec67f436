"""`/kortex`: what an operator may ask privately. Admin answers are audited before they are given."""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import assert_never

from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.budget import BudgetLimits
from bot.domain.ids import Person, TeamId, UserId
from bot.domain.providers import ProviderStatus
from bot.ports import SpentBy, StorageUnavailable
from bot.slack import words
from bot.slack.audit_answer import audit_answer
from bot.slack.ingress_ports import IngressPorts, IngressSettings
from bot.slack.mrkdwn import escape, visible
from bot.slack.payloads import SlashCommand

COMMAND = "/kortex"
_USER_ID = re.compile(r"[UW][A-Z0-9]{2,20}", re.ASCII)
_ROWS = 15


class Subcommand(StrEnum):
    """What works."""

    HELP = "help"
    BUDGET = "budget"
    PROVIDERS = "providers"
    AUDIT = "audit"


class Commands:
    """Answers in Slack's mrkdwn, shown to the person who asked and nobody else."""

    def __init__(self, settings: IngressSettings, ports: IngressPorts) -> None:
        self._settings = settings
        self._ports = ports

    async def answer(self, command: SlashCommand) -> str:
        """The private answer. Never raises for a store that is away."""
        identity = self._settings.identity
        if not identity.is_addressee(command.team_id, command.api_app_id):
            return escape(words.EXTERNAL)
        wanted = _subcommand(command.text)
        if wanted is None:
            unknown = escape(visible(command.text.strip())[:80])
            return f"There is no `{COMMAND} {unknown.replace('`', '´')}`.\n{words.COMMAND_HELP}"
        if wanted is Subcommand.HELP:
            return f"{escape(words.HELP)}\n{words.COMMAND_HELP}"
        try:
            return await self._administer(wanted, command)
        except StorageUnavailable:
            return words.CANNOT_READ

    async def _administer(self, wanted: Subcommand, command: SlashCommand) -> str:
        person = Person(TeamId(command.team_id), UserId(command.user_id))
        refusal = await self._ports.roles.refusal(person, self._settings.admin_roles)
        try:
            await self._record(wanted, command, allowed=refusal is None)
        except StorageUnavailable:
            return words.CANNOT_AUDIT
        if refusal is not None:
            return f"`{COMMAND} {wanted}` is for admins. {escape(refusal)}"
        match wanted:
            case Subcommand.BUDGET:
                return await self._budget()
            case Subcommand.PROVIDERS:
                return _providers(await self._ports.providers())
            case Subcommand.AUDIT:
                return await audit_answer(self._ports.trail)
            case Subcommand.HELP:
                return words.COMMAND_HELP
            case _:
                assert_never(wanted)

    async def _record(self, wanted: Subcommand, command: SlashCommand, *, allowed: bool) -> None:
        await self._ports.audit.append(
            AuditEvent(
                AuditKind.ADMIN_COMMAND,
                UserId(command.user_id),
                {
                    "command": wanted.value,
                    "allowed": allowed,
                    "channel": command.channel_id,
                },
                key=f"admin.command:{command.trigger_id}" if command.trigger_id else "",
            )
        )

    async def _budget(self) -> str:
        spent = (await self._ports.ledger.today()).spent_usd_micros
        by_user = await self._ports.ledger.report(None, "user")
        by_provider = await self._ports.ledger.report(None, "provider")
        return "\n".join(
            (
                _today(spent, self._settings.budget),
                "*By person*",
                *_rows(by_user),
                "*By provider*",
                *_rows(by_provider),
            )
        )


def _subcommand(text: str) -> Subcommand | None:
    first = text.strip().casefold() or Subcommand.HELP
    return next((each for each in Subcommand if each == first), None)


def _today(spent_usd_micros: int, limits: BudgetLimits) -> str:
    spent = f"*Today (UTC)*: {_dollars(spent_usd_micros)}"
    if limits.daily_usd_micros == 0:
        return f"{spent}, no daily limit"
    pct = 100 * spent_usd_micros // limits.daily_usd_micros
    return f"{spent} of {_dollars(limits.daily_usd_micros)} ({pct} %)"


def _rows(report: Sequence[SpentBy]) -> tuple[str, ...]:
    if not report:
        return ("• nothing yet",)
    first = sorted(report, key=lambda row: (-row.usd_micros, -row.tokens, row.name))
    rest = len(first) - _ROWS
    more = (f"• and {rest} more",) if rest > 0 else ()
    return (*(_row(row) for row in first[:_ROWS]), *more)


def _row(row: SpentBy) -> str:
    rounds = f"{row.rounds} round{'' if row.rounds == 1 else 's'}"
    unpriced = f", {row.rounds_unpriced} without a known price" if row.rounds_unpriced else ""
    return f"• {_name(row.name)}: {_dollars(row.usd_micros)}, {rounds}, {row.tokens:,} tokens{unpriced}"


def _name(name: str) -> str:
    # A mention in a private answer notifies nobody and shows the name people know.
    return f"<@{name}>" if _USER_ID.fullmatch(name) else escape(visible(name))


def _providers(report: Sequence[ProviderStatus]) -> str:
    lines = (
        f"• {escape(visible(each.name))}: {escape(visible(each.as_words()))}" for each in report
    )
    return "\n".join(("*Providers*", *lines)) if report else "No provider is configured."


def _dollars(usd_micros: int) -> str:
    return f"${usd_micros / 1_000_000:,.4f}"
