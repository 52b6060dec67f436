"""The two buttons below an answer: a vote is stored at once, and a second form asks why it did not help."""

import asyncio
from collections.abc import Awaitable

import structlog

from bot.domain.feedback import Vote
from bot.ports.failures import StorageUnavailable, SurfaceFailed, SurfaceGone
from bot.slack.ingress.clicks import Click, remember
from bot.slack.ingress.payloads import SlackIdentity
from bot.slack.listeners import replies
from bot.slack.listeners.answer_clicks import is_here
from bot.slack.listeners.background_tasks import BackgroundTasks
from bot.slack.listeners.ports import IngressPorts
from bot.slack.views.feedback import reason_view, vote_of
from bot.slack.views.modals import MAX_REASON
from tools.redactor import RedactionFailed

_log = structlog.stdlib.get_logger(__name__)


class FeedbackClicks:
    """Takes votes of people of this workspace on answers of the channel that they press in."""

    def __init__(
        self,
        identity: SlackIdentity,
        ports: IngressPorts,
        background: BackgroundTasks,
        timeout_s: float,
    ) -> None:
        self._identity = identity
        self._ports = ports
        self._background = background
        self._timeout_s = timeout_s

    async def vote(self, click: Click) -> None:
        """Count it, and ask why an answer did not help; `trigger_id` lives 3 s."""
        try:
            async with asyncio.timeout(self._timeout_s):
                told = await self._vote(click)
        except (StorageUnavailable, TimeoutError) as error:
            _log.warning("slack.vote.failed", error=type(error).__name__)
            told = replies.VOTE_NOT_STORED
        if told:
            whisper = self._ports.surface.whisper(click.place, click.person.user, told)
            self._background.run("whisper", whisper)

    async def explain(self, click: Click, reason: str) -> str:
        """Keep the reason; what to tell in the form, empty when it was taken."""
        found = vote_of(click.value)
        if found is None or not is_here(found[1], click) or not reason.strip():
            return ""
        try:
            redacted = self._ports.redactor.redact(reason.strip()[:MAX_REASON])
            key = f"feedback:{found[1]}:{click.person.user}:{click.action_ts}:why"
            async with asyncio.timeout(self._timeout_s):
                kept = await self._ports.feedback.explain(found[1], click.person, redacted, key)
        except (StorageUnavailable, RedactionFailed, TimeoutError) as error:
            _log.warning("slack.vote.unexplained", error=type(error).__name__)
            return replies.REASON_NOT_STORED
        return "" if kept else replies.VOTE_CHANGED

    async def _vote(self, click: Click) -> str:
        if self._identity.is_external(click.person.team):
            return replies.EXTERNAL
        found = vote_of(click.value)
        if found is None or not is_here(found[1], click):
            return replies.ANSWER_GONE
        vote, turn = found
        key = f"feedback:{turn}:{click.person.user}:{click.action_ts}"
        changed = await self._ports.feedback.vote(turn, click.person, vote, key)
        if changed is None:
            return replies.ANSWER_GONE
        if vote is Vote.UP or not self._ports.feedback.keeps_reasons:
            return replies.THANKS if changed else ""
        return await self._asked_why(
            self._ports.api.call(
                "views.open", trigger_id=click.trigger_id, view=reason_view(remember(click))
            )
        )

    async def _asked_why(self, opening: Awaitable[object]) -> str:
        try:
            await opening
        except (SurfaceFailed, SurfaceGone) as error:
            _log.warning("slack.form.not_opened", error=type(error).__name__)
            return replies.REASON_NOT_ASKED
        return ""
