""" "Catch me up": a digest of a thread or a channel from its messages and records, without a model.

People's words are quoted as theirs. Findings are quoted from answers with their marks. A model
never reads the digest, only that there was one.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from pydantic import JsonValue

from adapters.llm.messages import Message, Role, StopReason
from bot.chat.recap_text import QUOTED, ChannelPart, channel_digest, inert, thread_digest
from bot.chat.stopping import StoppedByPerson, unless_stopped
from bot.chat.turn_result import finished_without_round
from bot.domain.dossier import Dossier
from bot.domain.ids import ALERTS, MessageTs, Place, SessionId, session_at
from bot.domain.session import Ask
from bot.domain.thread import Said
from bot.domain.turn_events import TurnEnd, TurnFinished
from bot.ports.durability import Journal, StopSignal
from bot.ports.platform import ThreadReader
from bot.ports.records import Records
from tools.redactor import Redactor

MOST_MESSAGES: Final = 500  # of a thread
CHANNEL_MESSAGES: Final = 100  # of each thread of a channel
THREADS: Final = 5
LATELY: Final = timedelta(hours=24)
READING_S: Final = 30.0  # of all reading: pages are paced, and a 429 waits for its time
KEPT: Final = "(Here I posted a digest of this thread. No model was used for it.)"
_WHOLE: Final = "The whole report with every decision: `kortex incident report`."
NO_TIME: Final = "I could not read the messages in time: this is only from my own records"

_CLOCK: Final = "clock"  # the actor of an expiry: bot.actions.decide
_PLEASE = r"(?:please[, ]+)?(?:(?:can|could) you )?(?:please )?"
_ALWAYS: Final = re.compile(
    _PLEASE + r"(?:catch (?:me|us) up(?: (?:here|on (?:this|the) (?:thread|channel)))?"
    r"|(?:(?:give|write) (?:me|us) )?(?:a |the )?summary so far"
    r"|(?:give (?:me|us) )?(?:a |the )?summary of (?:this|the) (?:thread|channel)"
    r"|summari[sz]e (?:this|the) (?:thread|channel|incident)"
    r"|(?:(?:give|get) (?:me|us) )?(?:a |the |an )?(?:quick |short )?(?:recap|tl ?;? ?dr|summary|status update)"
    r"|where (?:are|do) we(?: stand)?|what did i miss|bring me up to speed"
    r")(?:,? (?:please|pls|plz))?[ ?.!]*",
    re.IGNORECASE,
)
_REPORT: Final = re.compile(
    _PLEASE
    + r"(?:(?:write|draft|create|make|give me|prepare|start|do) )?(?:up )?(?:a |an |the |me a |us a )?"
    r"(?:post-?\s?mortem|incident report|rca)(?: (?:for|of|about) (?:this|it|the incident))?"
    r"(?:,? (?:please|pls|plz))?[ ?.!]*",
    re.IGNORECASE,
)
_PERHAPS: Final = re.compile(
    r"(?:so )?what(?:'s| has|\u2019s)? happened(?: so far| here)?(?:,? please)?[ ?.!]*",
    re.IGNORECASE,
)


def asks_for_recap(text: str) -> bool:
    """Whether the whole message asks what there was so far."""
    flat = " ".join(text.split())
    return bool(_ALWAYS.fullmatch(flat) or _PERHAPS.fullmatch(flat))


def asks_for_report(text: str) -> bool:
    """Whether the whole message asks for the incident in writing."""
    return _REPORT.fullmatch(" ".join(text.split())) is not None


# The first page of an incident's report, line by line.
PageOf = Callable[[Dossier], Iterable[str]]


@dataclass(slots=True, eq=False, repr=False)
class Recaps:
    """Answers those asks, one journal step each. `redactor` masks all that goes in.

    Without a reader there are no messages to quote: then the report alone is written here.
    """

    reader: ThreadReader | None
    records: Records
    redactor: Redactor
    page_of: PageOf

    async def answer(
        self, ask: Ask, notices: Sequence[str], journal: Journal, stop: StopSignal
    ) -> tuple[TurnFinished, Sequence[Message]] | None:
        """The end of the turn and its messages; None if the question is for the loop.

        Raises StorageUnavailable, RedactionFailed.
        """
        is_recap = self.reader is not None and asks_for_recap(ask.text)
        if not (is_recap or asks_for_report(ask.text)):
            return None

        async def step() -> JsonValue:
            try:
                told = await unless_stopped(stop, self._text(ask))
            except StoppedByPerson:
                return ["stopped", ""]
            return None if told is None else ["told", self.redactor.redact(told)]

        kept = await journal.step("recap", step)
        if not isinstance(kept, list):
            return None
        if kept[0] == "stopped":
            stopped = finished_without_round(TurnEnd.STOPPED, "", notices)
            return replace(stopped, stop_reason=StopReason.END_TURN, stopped_by=stop.by), ()
        told = finished_without_round(TurnEnd.ANSWERED, str(kept[1]), notices)
        said = (Message(Role.ASSISTANT, text=KEPT),)
        return replace(told, stop_reason=StopReason.END_TURN), said

    async def _text(self, ask: Ask) -> str | None:
        place = ask.place
        if asks_for_report(ask.text):
            return await self._report(ask)
        reader = self.reader
        if reader is None:
            return None
        if place.thread_ts != ask.ts:
            return await self._of_thread(ask, reader)
        found = await self.records.recent(place, LATELY, THREADS)
        if not found.sessions and not _ALWAYS.fullmatch(" ".join(ask.text.split())):
            return None
        parts = [await self._part(each, ask, reader) for each in found.sessions]
        told = [each for each in parts if each is not None]
        return channel_digest(told, _hours(LATELY), found.total)

    async def _report(self, ask: Ask) -> str | None:
        dossier = await self.records.read(session_at(ask.place))
        before = tuple(turn for turn in dossier.turns if turn.id != ask.turn_id) if dossier else ()
        if dossier is None or not before:
            return None
        lines = self.page_of(replace(dossier, turns=before))
        page = "\n".join(_as_text(line) for line in lines)
        return f"**Draft from the records; nothing was checked again.**\n\n{page}\n{_WHOLE}"

    async def _of_thread(self, ask: Ask, reader: ThreadReader) -> str:
        place = ask.place
        dossier = await self.records.read(session_at(place))
        part = await self._read(reader, place, dossier, ask.ts, MOST_MESSAGES)
        return thread_digest(part, ask.turn_id)

    async def _part(self, session: SessionId, ask: Ask, reader: ThreadReader) -> ChannelPart | None:
        dossier = await self.records.read(session)
        if dossier is None:
            return None
        return await self._read(reader, dossier.session.place, dossier, ask.ts, CHANNEL_MESSAGES)

    async def _read(
        self,
        reader: ThreadReader,
        place: Place,
        dossier: Dossier | None,
        before: MessageTs,
        most: int,
    ) -> ChannelPart:
        missing = NO_TIME
        messages: Sequence[Said] = ()
        try:
            async with asyncio.timeout(READING_S):
                read = await reader.read(place, before, most)
            # Mask before the cut: half a secret would not be recognized. Hundreds take time.
            messages = await asyncio.to_thread(self._masked, read.messages)
            missing = read.missing
        except TimeoutError:
            pass
        names = {user: await reader.name(place, user) for user in sorted(_people(dossier))}
        links = {ts: reader.link(place, ts) for ts in _linked(place, dossier)}
        return ChannelPart(place, dossier, messages, missing, names, links, datetime.now(UTC))

    def _masked(self, messages: Sequence[Said]) -> Sequence[Said]:
        return [
            replace(each, text=self.redactor.redact(each.text)) if len(each.text) > QUOTED else each
            for each in messages
        ]


def _as_text(line: str) -> str:
    mark, _, words = line.partition(" ")
    if mark == "##":
        return f"**{inert(words, QUOTED)}**"
    return f"- {inert(words, QUOTED)}" if mark == "-" else inert(line, QUOTED)


def _people(dossier: Dossier | None) -> set[str]:
    if dossier is None:
        return set()
    deciders = {str(p.decided_by) for p in dossier.proposals if p.decided_by}
    return {turn.asker for turn in dossier.turns} - {ALERTS} | (deciders - {_CLOCK})


def _linked(place: Place, dossier: Dossier | None) -> set[MessageTs]:
    found = {place.thread_ts} - {MessageTs("")}
    if dossier is not None:
        found |= {MessageTs(t.answer_ts) for t in dossier.turns if t.answer_ts}
        found |= {MessageTs(p.card_ts) for p in dossier.proposals if p.card_ts}
    return found


def _hours(span: timedelta) -> int:
    return round(span.total_seconds() / 3600)
