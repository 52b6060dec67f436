"""The buttons of an answer: stop it, list its results, look at one of them, vote on it."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping

import structlog

from bot.domain.feedback import Vote
from bot.domain.ids import Place, TurnId
from bot.domain.turn_events import Evidence
from bot.ports.failures import StorageUnavailable, SurfaceFailed, SurfaceGone
from bot.slack.ingress.clicks import Click, remember
from bot.slack.ingress.payloads import View
from bot.slack.listeners import replies
from bot.slack.listeners.background_tasks import BackgroundTasks
from bot.slack.listeners.ports import Form, IngressPorts, IngressSettings, Pressed
from bot.slack.listeners.replies import refuse
from bot.slack.views.modals import (
    FEEDBACK_ACTION,
    FEEDBACK_CALLBACK,
    MAX_REASON,
    REASON_BLOCK,
    REASON_INPUT,
    evidence_view,
    reason_view,
    vote_of,
)
from bot.slack.views.render import STOP_ACTION
from bot.slack.views.sources import (
    LINK_ACTION,
    OPEN_ACTION,
    OVERVIEW_ACTION,
    RAW_ACTION,
    SELECT_ACTION,
    Source,
    answer_view,
    opened_view,
    results_view,
)
from tools.redactor import RedactionFailed

_log = structlog.stdlib.get_logger(__name__)
FEEDBACK_BUTTON = re.compile(rf"{FEEDBACK_ACTION}(?::(?:up|down))?", re.ASCII)
EVIDENCE_BUTTON = re.compile(rf"{OPEN_ACTION}:[0-9]{{1,4}}", re.ASCII)
_EVIDENCE_VALUE = re.compile(r"(turn:[^|]{1,300})\|([0-9]{1,4})", re.ASCII)


class AnswerClicks:
    """What the buttons under an answer do. External people get nothing, guests no results."""

    def __init__(
        self, settings: IngressSettings, ports: IngressPorts, background: BackgroundTasks
    ) -> None:
        self._identity = settings.identity
        self._links = settings.evidence_links  # of the backends that the channel looks at now
        self._ports = ports
        self._background = background
        self._timeout_s = settings.handling_timeout_s

    def buttons(self) -> Mapping[str | re.Pattern[str], Pressed]:
        """What a press of each button does. A `trigger_id` lives 3 s."""

        async def nothing(_click: Click) -> None: ...

        return {
            STOP_ACTION: self._telling(self._stop, replies.NOT_STOPPED),
            OVERVIEW_ACTION: self._telling(self._open_overview, replies.EVIDENCE_NOT_OPENED),
            EVIDENCE_BUTTON: self._telling(self._open_evidence, replies.EVIDENCE_NOT_OPENED),
            SELECT_ACTION: self._telling(self._open_evidence, replies.EVIDENCE_NOT_OPENED),
            RAW_ACTION: self._telling(self._open_raw, replies.EVIDENCE_NOT_OPENED),
            LINK_ACTION: nothing,
            FEEDBACK_BUTTON: self._telling(self._vote, replies.VOTE_NOT_STORED),
        }

    def forms(self) -> Mapping[str, Form]:
        return {FEEDBACK_CALLBACK: Form(REASON_BLOCK, self._explain)}

    def _telling(self, work: Callable[[Click], Awaitable[str | None]], failed: str) -> Pressed:
        async def pressed(click: Click) -> None:
            try:
                async with asyncio.timeout(self._timeout_s):
                    text = await work(click)
            except (StorageUnavailable, SurfaceFailed, SurfaceGone, TimeoutError) as error:
                why = type(error).__name__
                _log.warning("slack.click.failed", action=click.action_id, error=why)
                text = failed
            if text:
                whisper = self._ports.surface.whisper(click.place, click.person.user, text)
                self._background.run("whisper", whisper)

        return pressed

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

    async def _explain(self, click: Click, view: View) -> str:
        """Store the reason of a vote, which counts without it too."""
        reason = view.answer(REASON_BLOCK, REASON_INPUT).strip()
        found = vote_of(click.value)
        if found is None or not is_here(found[1], click) or not reason:
            return ""
        try:
            redacted = self._ports.redactor.redact(reason[:MAX_REASON])
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
        try:
            view = reason_view(remember(click))
            await self._ports.api.call("views.open", trigger_id=click.trigger_id, view=view)
        except (SurfaceFailed, SurfaceGone) as error:
            _log.warning("slack.form.not_opened", error=type(error).__name__)
            return replies.REASON_NOT_ASKED
        return ""


def is_here(turn: str, click: Click) -> bool:
    """Whether a button's or option's turn is of its own channel: a turn's id begins with its place."""
    return turn.startswith(f"turn:{click.place.team}:{click.place.channel}:")
