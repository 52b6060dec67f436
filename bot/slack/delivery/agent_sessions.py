"""The status of a thread at Slack: processing, suspended (a decision is open), or active.

While a thread is processed, Slack shows a Stop button of its own
(https://docs.slack.dev/ai/agent-sessions). A workspace without these methods gets the older ones,
or none. The first refusal decides that. Updates are best effort.
"""

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Self

import structlog
from pydantic import JsonValue

from bot.domain.ids import Place
from bot.domain.proposal import Proposal, ProposalState
from bot.domain.session import Ask
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.calls import SlackCalls
from bot.slack.api.web_api import RateLimited, Refused
from bot.slack.delivery.pacing import Bucket, Rates
from bot.slack.delivery.streams import NEVER_HERE
from bot.slack.text.mrkdwn import plain

_log = structlog.stdlib.get_logger(__name__)

PROCESSING, SUSPENDED, ACTIVE = "processing", "suspended", "active"
_NEW, _OLD, _OLD_TITLE = (
    "agents.sessions.setStatus",
    "assistant.threads.setStatus",
    "assistant.threads.setTitle",
)
# In the older words; "" takes them away. They vanish by themselves after two minutes.
_LINES = {PROCESSING: "is looking into it…", SUSPENDED: "", ACTIVE: ""}
_TITLE_CHARS = 80
_TIME = re.compile(r"\d{4}-\d\d-\d\dT(\d\d:\d\d)Z")  # as `bot.alerts.words` asks, for a model
_UNHEARD = "missing_agent_session_stopped_event_subscription"


@dataclass(frozen=True, slots=True)
class _SentStatus:
    status: str
    title: str = ""
    initiator: str = ""


class AgentSessions:
    """The threads of one workspace. A newer status replaces one that was not sent yet."""

    def __init__(
        self,
        api: SlackCalls,
        rates: Rates | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        rates = rates or Rates()
        self._api = api
        self._clock = clock
        self._bucket = Bucket(rates.session_burst, rates.sessions_per_minute / 60)
        self._methods = [_NEW, _OLD]
        self._due: dict[Place, _SentStatus] = {}
        self._working: set[Place] = set()
        self._waiting: defaultdict[Place, set[str]] = defaultdict(set)
        self._wake = asyncio.Event()
        self._warned = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        async with asyncio.TaskGroup() as tasks:
            telling = tasks.create_task(self._run(), name="slack-sessions")
            try:
                yield self
            finally:
                telling.cancel()

    def begins(self, ask: Ask) -> None:
        """An answer began; the first question of a thread is its title."""
        self._working.add(ask.place)
        is_first = ask.ts == ask.place.thread_ts
        is_alert = not ask.asker.is_somebody
        text = _TIME.sub(r"\1 UTC", ask.text) if is_alert else ask.text
        title = plain(text, _TITLE_CHARS) if is_first else ""
        initiator = "" if is_alert else ask.asker.user
        self._tell(ask.place, _SentStatus(PROCESSING, title, initiator))

    def ends(self, place: Place) -> None:
        self._working.discard(place)
        self._rests(place)

    def shows(self, proposal: Proposal) -> None:
        waiting = self._waiting[proposal.place]
        if proposal.state is ProposalState.PENDING:
            waiting.add(proposal.id)
        else:
            waiting.discard(proposal.id)
        if not waiting:
            del self._waiting[proposal.place]
        if proposal.place not in self._working:
            self._rests(proposal.place)

    def _rests(self, place: Place) -> None:
        before = self._due.get(place)
        title, initiator = (before.title, before.initiator) if before else ("", "")
        status = SUSPENDED if self._waiting.get(place) else ACTIVE
        self._tell(place, _SentStatus(status, title, initiator))

    def _tell(self, place: Place, told: _SentStatus) -> None:
        if place.thread_ts and self._methods:
            self._due[place] = told
            self._wake.set()

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            while self._due:
                wait_s = self._bucket.wait_s(self._clock(), 1)
                if wait_s > 0:
                    await asyncio.sleep(wait_s)
                place = next(iter(self._due))
                await self._send(place, self._due.pop(place))
            await self._wake.wait()

    async def _send(self, place: Place, told: _SentStatus) -> None:
        while self._methods:
            method = self._methods[0]
            self._bucket.draw(self._clock())
            try:
                answer = await self._api.call(method, **_arguments(method, place, told))
                self._warn(str(answer.get("warning", "")))
                if method == _OLD and told.title:
                    title: dict[str, JsonValue] = {"title": told.title}
                    await self._api.call(_OLD_TITLE, **_where(place), **title)
            except RateLimited as limited:
                self._due.setdefault(place, told)
                await asyncio.sleep(limited.retry_after_s)
            except Refused as refused:
                if refused.code in NEVER_HERE:
                    _log.warning("slack.sessions.refused", error=str(refused))
                    self._methods.remove(method)
                    continue
                _log.info("slack.session.status_not_sent", error=str(refused))
            except (SurfaceFailed, SurfaceGone) as error:
                _log.info("slack.session.status_not_sent", error=str(error))
            return

    def _warn(self, warning: str) -> None:
        if _UNHEARD in warning and not self._warned:
            self._warned = True
            _log.warning("slack.stop_event.not_subscribed", subscribe_to="agent_session_stopped")


def _where(place: Place) -> dict[str, JsonValue]:
    return {"channel_id": place.channel, "thread_ts": place.thread_ts}


def _arguments(method: str, place: Place, told: _SentStatus) -> dict[str, JsonValue]:
    if method == _OLD:
        return _where(place) | {"status": _LINES[told.status]}
    made = _where(place) | {"status": told.status}
    if told.title:
        made["title"] = told.title
    if told.initiator:
        made["initiator_user_id"] = told.initiator
    return made
