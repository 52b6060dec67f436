"""The app's home tab: what the bot can do, and who may decide where."""

from collections.abc import Mapping, Sequence

import structlog
from pydantic import JsonValue

from bot.domain.channel import ChannelRule
from bot.slack.api.web_api import Refused
from bot.slack.handling import words
from bot.slack.handling.errands import Errands
from bot.slack.handling.ingress_ports import IngressPorts, IngressSettings
from bot.slack.received.payloads import HomeOpened, SlackIdentity
from bot.slack.text.mrkdwn import escape_within, visible

_log = structlog.stdlib.get_logger(__name__)

_SUGGEST = "assistant.threads.setSuggestedPrompts"
_RULES_SHOWN = 20
_SECTION_CHARS = 3_000  # https://docs.slack.dev/reference/block-kit/blocks/section-block


class Home:
    """Publishes the tab whenever somebody opens it, on the side."""

    def __init__(self, settings: IngressSettings, ports: IngressPorts, errands: Errands) -> None:
        self._identity: SlackIdentity = settings.identity
        self._channels = settings.channels
        self._api = ports.api
        self._errands = errands
        self._prompts = True

    def show(self, opened: HomeOpened) -> None:
        """Publish it for the person; in the messages tab, say what may be asked."""
        ours = self._identity.is_addressee(opened.team_id, opened.api_app_id)
        if ours and opened.event.tab == "home":
            self._errands.run("home", self._publish(opened.event.user))
        if ours and opened.event.tab == "messages" and opened.event.channel and self._prompts:
            self._errands.run("prompts", self._suggest(opened.event.channel))

    async def _suggest(self, channel: str) -> None:
        """A workspace that has not got them refuses once."""
        prompts: list[JsonValue] = [{"title": t, "message": m} for t, m in words.PROMPTS]
        try:
            await self._api.call(_SUGGEST, channel_id=channel, prompts=prompts)
        except Refused as refused:
            self._prompts = False
            _log.info("slack.prompts.refused", error=str(refused))

    async def _publish(self, user: str) -> None:
        await self._api.call("views.publish", user_id=user, view=dict(home_view(self._channels)))


def home_view(rules: Sequence[ChannelRule]) -> Mapping[str, JsonValue]:
    """The tab's view."""
    return {
        "type": "home",
        "blocks": [
            {"type": "header", "text": {"type": "plain_text", "text": "Kortex"}},
            _section(words.HELP),
            _section(f"{words.COMMAND_HELP}"),
            {"type": "divider"},
            _section("\n".join(("*Who may confirm*", *_deciders(rules)))),
        ],
    }


def _deciders(rules: Sequence[ChannelRule]) -> tuple[str, ...]:
    lines = tuple(
        f"• {_place(rule.match)}: {_inert(', '.join(rule.confirm)) or 'nobody; anybody may ask'}"
        for rule in rules[:_RULES_SHOWN]
    )
    if any(rule.match == "*" for rule in rules):
        return lines
    return (*lines, "• in any other channel: nobody; anybody may ask")


def _place(match: str) -> str:
    """Where a rule holds, in words."""
    if match == "*":
        return "in any other channel"
    return "in direct messages" if match == "@direct" else f"in `#{_inert(match)}`"


def _inert(text: str) -> str:
    return escape_within(visible(text), 100).replace("`", "´")


def _section(mrkdwn: str) -> JsonValue:
    return {"type": "section", "text": {"type": "mrkdwn", "text": mrkdwn[:_SECTION_CHARS]}}
