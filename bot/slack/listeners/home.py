"""The app's home tab: what the person may do and see, built at every opening.

A part that cannot be read says so; the other parts are shown.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import structlog
from pydantic import JsonValue

from bot.chat.budget_report import budget_report
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.channel import DIRECT, GROUP, ChannelRule
from bot.domain.ids import Person, UserId
from bot.domain.roles import HeldRoles
from bot.ports.failures import StorageUnavailable
from bot.slack.api.web_api import Refused
from bot.slack.ingress.payloads import HomeOpened, SlackIdentity
from bot.slack.listeners import replies
from bot.slack.listeners.admin_answers import providers_lines
from bot.slack.listeners.background_tasks import BackgroundTasks
from bot.slack.listeners.budget_answer import headline
from bot.slack.listeners.ports import IngressPorts, IngressSettings
from bot.slack.listeners.status import Status
from bot.slack.text.mrkdwn import escape_within, visible

_log = structlog.stdlib.get_logger(__name__)

_SUGGEST = "assistant.threads.setSuggestedPrompts"
_RULES_SHOWN = 20
_SECTION_CHARS = 3_000  # https://docs.slack.dev/reference/block-kit/blocks/section-block
NOT_CHECKED: Final = "I could not check your roles with Slack. Open this tab again."
NOT_READ: Final = "The figures are not available now. Open this tab again."


@dataclass(frozen=True, slots=True)
class HomeContent:
    """The content of the tab for one person.

    Texts are safe mrkdwn; `admin` is empty for other people.
    """

    rules: Sequence[ChannelRule]
    held: HeldRoles
    is_admin: bool
    cards: Sequence[str]
    freeze: str
    admin: Sequence[str] = ()


class Home:
    """Publishes the tab in the background when a person opens it."""

    def __init__(
        self, settings: IngressSettings, ports: IngressPorts, background: BackgroundTasks
    ) -> None:
        self._identity: SlackIdentity = settings.identity
        self._settings = settings
        self._ports = ports
        self._background = background
        self._status = Status(ports, settings.identity.team, settings.identity.site)
        self._prompts = True

    def show(self, opened: HomeOpened) -> None:
        """Publish it for the person; in the messages tab, say what may be asked."""
        ours = self._identity.is_addressee(opened.installed_team, opened.api_app_id)
        if ours and opened.event.tab == "home":
            self._background.run("home", self._publish(opened.event.user, opened.event_id))
        if ours and opened.event.tab == "messages" and opened.event.channel and self._prompts:
            self._background.run("prompts", self._suggest(opened.event.channel))

    async def _suggest(self, channel: str) -> None:
        """A workspace that has not got them refuses once."""
        prompts: list[JsonValue] = [{"title": t, "message": m} for t, m in replies.PROMPTS]
        try:
            await self._ports.api.call(_SUGGEST, channel_id=channel, prompts=prompts)
        except Refused as refused:
            self._prompts = False
            _log.info("slack.prompts.refused", error=str(refused))

    async def _publish(self, user: str, event_id: str) -> None:
        view = home_view(await self._seen(Person(self._identity.team, UserId(user)), event_id))
        await self._ports.api.call("views.publish", user_id=user, view=dict(view))

    async def _seen(self, person: Person, event_id: str) -> HomeContent:
        """`person` is taken for one of this workspace; the roles look whether that is so."""
        rules = self._settings.channels
        named = list(dict.fromkeys(role for rule in rules for role in rule.confirm))
        held, refusal, cards, freeze = await asyncio.gather(
            self._ports.roles.held(person, named),
            self._ports.roles.refusal(person, self._settings.admin_roles),
            self._status.open_cards(person),
            self._status.freeze(),
        )
        admin = await self._admin(person, event_id) if refusal is None else ()
        return HomeContent(tuple(rules), held, refusal is None, cards, freeze, admin)

    async def _admin(self, person: Person, event_id: str) -> Sequence[str]:
        event = AuditEvent(
            AuditKind.ADMIN_COMMAND,
            person.user,
            {"command": "home", "allowed": True, "channel": ""},
            key=f"admin.home:{event_id}" if event_id else "",
        )
        try:
            await self._ports.audit.append(event)
            report = await budget_report(self._ports.ledger, self._settings.budget)
            providers = await self._ports.providers()
        except StorageUnavailable:
            return (NOT_READ,)
        return (headline(report), *providers_lines(providers))


def home_view(seen: HomeContent) -> Mapping[str, JsonValue]:
    commands = replies.COMMAND_HELP if seen.is_admin else replies.EVERYBODYS_HELP
    blocks: list[JsonValue] = [
        {"type": "header", "text": {"type": "plain_text", "text": "Kortex"}},
        _section((replies.HELP,)),
        _section(("*What you can do*", *_may(seen), commands.rstrip())),
        {"type": "divider"},
        _section(("*Open proposals*", *seen.cards)),
        _section((seen.freeze,)),
        {"type": "divider"},
        _section(("*Who can confirm*", *_deciders(seen))),
    ]
    if seen.admin:
        blocks += [{"type": "divider"}, _section(("*For admins*", *seen.admin))]
    return {"type": "home", "blocks": blocks}


def _may(seen: HomeContent) -> Sequence[str]:
    if seen.held.unread:
        return (NOT_CHECKED,)
    mine = [rule for rule in _shown(seen) if seen.held.held & set(rule.confirm)]
    where = ", ".join(_place(rule.match) for rule in mine[:_RULES_SHOWN])
    asks = "Ask me in any channel that I am in."
    if where:
        return (f"{asks} You can confirm and reject proposals {where}.",)
    return (f"{asks} You cannot confirm proposals; the roles below can.",)


def _deciders(seen: HomeContent) -> Sequence[str]:
    shown = _shown(seen)
    lines = [
        f"• {_place(rule.match)}: {_inert(', '.join(rule.confirm)) or _without(rule)}"
        for rule in shown[:_RULES_SHOWN]
    ]
    hidden = len(seen.rules) - len(shown[:_RULES_SHOWN])
    if hidden:
        lines.append(f"• {hidden} more rules for single channels: ask me there")
    if any(rule.match == "*" for rule in seen.rules):
        return lines
    return [*lines, "• in any other channel: no one; everyone can ask"]


def _without(rule: ChannelRule) -> str:
    return "no one; everyone can ask" if rule.answers else "I do not answer there"


def _shown(seen: HomeContent) -> Sequence[ChannelRule]:
    """Rules of single channels are hidden from people who are not admins: the name may be private."""
    return [each for each in seen.rules if seen.is_admin or _is_wide(each.match)]


def _is_wide(match: str) -> bool:
    return match in {DIRECT, GROUP} or any(sign in match for sign in "*?[")


def _place(match: str) -> str:
    if match == "*":
        return "in any other channel"
    if match == GROUP:
        return "in group messages"
    return "in direct messages" if match == DIRECT else f"in `#{_inert(match)}`"


def _inert(text: str) -> str:
    return escape_within(visible(text), 100).replace("`", "´")


def _section(lines: Iterable[str]) -> JsonValue:
    kept: list[str] = []
    room = _SECTION_CHARS
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return {"type": "section", "text": {"type": "mrkdwn", "text": "\n".join(kept) or " "}}
