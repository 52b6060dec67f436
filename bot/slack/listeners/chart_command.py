"""`/kortex chart`: a metric for whoever asks, shown to them alone. It only reads, as their question would."""

import asyncio

import structlog

from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.chart_request import Charted, ChartRequest
from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, TurnId, UserId
from bot.ports.failures import StorageUnavailable
from bot.slack.ingress.payloads import SlashCommand
from bot.slack.listeners import replies
from bot.slack.listeners.background_tasks import BackgroundTasks
from bot.slack.listeners.message_intake import AskLimiter
from bot.slack.listeners.ports import IngressPorts
from bot.slack.text.mrkdwn import escape, inline

_log = structlog.stdlib.get_logger(__name__)
DEFAULT_RANGE = "last 1h"
# Less than the limit of a background task, so that the user gets a reply.
_PATIENCE_S = 9.0


class ChartCommand:
    """Answers at once; the chart follows."""

    def __init__(
        self,
        ports: IngressPorts,
        background: BackgroundTasks,
        limiter: AskLimiter | None = None,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self._ports = ports
        self._background = background
        self._limiter = limiter
        self._patience_s = patience_s

    async def answer(self, command: SlashCommand) -> str:
        """What is said at once, in mrkdwn."""
        person = Person(TeamId(command.team_id), UserId(command.user_id))
        refusal = await self._ports.roles.outsider(person)
        event = AuditEvent(
            AuditKind.ADMIN_COMMAND,
            person.user,
            {"command": "chart", "allowed": refusal is None, "channel": command.channel_id},
            key=f"admin.command:{command.trigger_id}" if command.trigger_id else "",
        )
        try:
            await self._ports.audit.append(event)
        except StorageUnavailable:
            return replies.CANNOT_AUDIT
        if refusal is not None:
            return escape(refusal)
        _, *given = command.text.split()
        if len(given) < 2:
            return replies.CHART_USAGE
        asked = TurnId(f"chart:{command.trigger_id}")
        if self._limiter is not None and not self._limiter.admits(person, asked):
            return replies.TOO_MANY_CHARTS
        metric, product, *rest = given
        place = Place(person.team, ChannelId(command.channel_id), MessageTs(""))
        time_range = " ".join(rest) or DEFAULT_RANGE
        request = ChartRequest(person, place, metric, product, time_range)
        self._background.run("chart", self._show(request))
        return replies.CHART_COMES.format(metric=inline(metric, 80), product=inline(product, 80))

    async def _show(self, request: ChartRequest) -> None:
        try:
            async with asyncio.timeout(self._patience_s):
                made = await self._ports.chart(request)
        except TimeoutError:
            made = Charted(replies.CHART_TOO_SLOW)
        except StorageUnavailable:
            made = Charted(replies.CANNOT_READ)
        charts = [made.chart] if made.chart else []
        await self._ports.surface.whisper(request.place, request.person.user, made.text, charts)
