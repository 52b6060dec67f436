"""The buttons of an answer: stop it, list its results, or look at one of them."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping

import structlog

from bot.domain.feedback import Vote
from bot.domain.ids import Place, TurnId
from bot.domain.turn_events import Evidence
from bot.ports.failures import StorageUnavailable, SurfaceFailed, SurfaceGone
from bot.slack.ingress.clicks import Click, remember
from bot.slack.ingress.payloads import SlackIdentity
from bot.slack.listeners import replies
from bot.slack.listeners.background_tasks import BackgroundTasks
from bot.slack.listeners.ports import EvidenceLinks, IngressPorts
from bot.slack.listeners.replies import refuse
from bot.slack.views.modals import MAX_REASON, evidence_view, reason_view, vote_of
from bot.slack.views.sources import Source, answer_view, opened_view, results_view
from tools.redactor import RedactionFailed

_log = structlog.stdlib.get_logger(__name__)
_EVIDENCE_VALUE = re.compile(r"(turn:[^|]{1,300})\|([0-9]{1,4})", re.ASCII)


class AnswerClicks:
    """What the buttons under an answer do. External people get neither, guests no results.

    `links` are of the backends that the button's channel looks at now.
    """

    def __init__(
        self,
        identity: SlackIdentity,
        ports: IngressPorts,
        background: BackgroundTasks,
        timeout_s: float,
        links: EvidenceLinks | None = None,
    ) -> None:
        self._identity = identity
        self._links = links
        self._ports = ports
        self._background = background
        self._timeout_s = timeout_s

    async def stop(self, click: Click) -> None:
        """Stop the turn of the answer that carries the button."""
        await self._telling(click, self._stop(click), replies.NOT_STOPPED)

    async def open_overview(self, click: Click) -> None:
        """List all results of an answer in a modal; `trigger_id` lives 3 s."""
        await self._telling(click, self._open_overview(click), replies.EVIDENCE_NOT_OPENED)

    async def open_evidence(self, click: Click) -> None:
        """Show one result in a modal, on top of the one it was chosen in."""
        await self._telling(click, self._open_evidence(click), replies.EVIDENCE_NOT_OPENED)

    async def open_raw(self, click: Click) -> None:
        """Show the JSON of an opened result on top of it."""
        await self._telling(click, self._open_raw(click), replies.EVIDENCE_NOT_OPENED)

    async def _telling(self, click: Click, work: Awaitable[str | None], failed: str) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                text = await work
        except (StorageUnavailable, SurfaceFailed, SurfaceGone, TimeoutError) as error:
            _log.warning("slack.click.failed", action=click.action_id, error=type(error).__name__)
            text = failed
        if text:
            self._background.run(
                "whisper", self._ports.surface.whisper(click.place, click.person.user, text)
            )

    async def _stop(self, click: Click) -> str | None:
        if self._identity.is_external(click.person.team):
            return replies.EXTERNAL
        turn = await self._ports.sessions.turn_of_answer(click.place, click.message_ts)
        if turn is None and is_here(click.value, click):
            turn = TurnId(click.value)
        if turn is not None and await self._ports.stops.request(turn, click.person.user):
            return None
        return replies.NOTHING_RUNS

    async def _open_overview(self, click: Click) -> str | None:
        turn = TurnId(click.value)
        if not is_here(turn, click):
            return replies.EVIDENCE_GONE
        sessions = self._ports.sessions
        stored = await sessions.answer(turn)
        answer = self._ports.placeholders.resolved(stored, click.place.key)
        is_barred = self._identity.is_external(click.person.team)
        if answer and (is_barred or await self._ports.roles.outsider(click.person) is not None):
            # Who reads the channel may read what its message has no room for, but no results.
            view = answer_view(answer)
        elif (refused := await self._refused(click, turn)) is not None:
            return refused
        else:
            found, notices = await sessions.consulted(turn), await sessions.notices(turn)
            if not (found or notices or answer):
                return replies.EVIDENCE_GONE
            results = [Source(evidence, asked) for evidence, asked in found]
            view = results_view(turn, results, remember(click), notices, answer)
        await self._ports.api.call("views.open", trigger_id=click.trigger_id, view=view)
        return None

    async def _open_evidence(self, click: Click) -> str | None:
        async def show(turn: TurnId, evidence: Evidence) -> None:
            asked = await self._ports.sessions.asked(turn, evidence.tool_call_id)
            links = await self._links_at(click.place)
            view = opened_view(evidence, asked, links, click.value, remember(click))
            method = "views.push" if click.in_modal else "views.open"
            await self._ports.api.call(method, trigger_id=click.trigger_id, view=view)

        return await self._with_evidence(click, show)

    async def _refused(self, click: Click, turn: str) -> str | None:
        if self._identity.is_external(click.person.team):
            return replies.EXTERNAL
        if not turn or not is_here(turn, click):
            return replies.EVIDENCE_GONE
        if (outsider := await self._ports.roles.outsider(click.person)) is not None:
            told = refuse(click, outsider, self._ports.api, self._ports.surface)
            self._background.run("refusal", told)
            return ""
        return None

    async def _links_at(self, place: Place) -> Mapping[str, str]:
        if self._links is None:
            return {}
        return self._links(place.team, (await self._ports.channel_now(place)).name)

    async def _open_raw(self, click: Click) -> str | None:
        async def show(_turn: TurnId, evidence: Evidence) -> None:
            view = evidence_view(evidence)
            await self._ports.api.call("views.push", trigger_id=click.trigger_id, view=view)

        return await self._with_evidence(click, show)

    async def _with_evidence(
        self, click: Click, show: Callable[[TurnId, Evidence], Awaitable[None]]
    ) -> str | None:
        found = _EVIDENCE_VALUE.fullmatch(click.value)
        if (refused := await self._refused(click, found.group(1) if found else "")) is not None:
            return refused
        if found is None:
            return replies.EVIDENCE_GONE
        turn = TurnId(found.group(1))
        evidence = await self._ports.sessions.evidence(turn, int(found.group(2)))
        if evidence is None:
            return replies.EVIDENCE_GONE
        await show(turn, evidence)
        return None


def is_here(turn: str, click: Click) -> bool:
    """Whether a button's or option's turn is of its own channel: a turn's id begins with its place."""
    return turn.startswith(f"turn:{click.place.team}:{click.place.channel}:")


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
        """Store the reason. The error to show in the form; empty on success."""
        found = vote_of(click.value)
        if found is None or not is_here(found[1], click) or not reason.strip():
            return ""
        try:
            redacted = self._ports.redactor.redact(reason.strip()[:MAX_REASON])
            key = f"feedback:{found[1]}:{click.person.user}:{click.action_ts}:why"
            async with asyncio.timeout(self._timeout_s):
                kept = await self._ports.feedback.explain(found[1], click.person, redacted, key)
        except (StorageUnavailable, RedactionFailed, TimeoutError) as error:
            _log.warning("slack.vote.reason_not_stored", error=type(error).__name__)
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
