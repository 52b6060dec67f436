"""core__get_incident_history: incidents of the past that resemble this one, and how they ended."""

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field

from tools.capabilities import CallContext, Capabilities, IncidentQuery, PastIncident
from tools.contract import LOOKUP, ToolInput, ToolOutput
from tools.core.arguments import Product, TimeRangeText
from tools.core.built_in import bound, counted, entry_of, read_only
from tools.output import clean_text
from tools.products import ProductScope, Reading, within
from tools.timerange import parse_time_range

MAX_INCIDENTS = 25
LONGEST_RANGE = timedelta(days=3650)
LONGEST_ONGOING = timedelta(days=7)


class HistoryInput(ToolInput):
    query: Annotated[
        str,
        Field(min_length=1, max_length=1000, description="Words: symptom, error, service, cause"),
    ]
    product: Product | None = None
    time_range: TimeRangeText | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_INCIDENTS)] = 10


class IncidentEntry(ToolOutput):
    id: str
    title: str
    product: str | None = None
    opened_at: str
    closed_at: str | None = None
    severity: str | None = None
    resolution_summary: str | None = None


class EarlierAnswer(ToolOutput):
    """An earlier answer of Kortex in this channel. It is unconfirmed."""

    id: str
    question: str
    product: str | None = None
    asked_at: str
    answered_at: str | None = None
    answer: str | None = None


class HistoryOutput(ToolOutput):
    """The best match first. `ongoing` have not ended: alerts that fire are the present, no history."""

    incidents: list[IncidentEntry]
    ongoing: list[IncidentEntry] | None = None
    earlier_answers: list[EarlierAnswer] | None = None
    range: str | None = None
    notes: list[str] | None = None


class GetIncidentHistory:
    contract = read_only(
        "get_incident_history",
        "Past incidents like this one and how they were resolved, by free text, best match"
        " first; `ongoing` have not ended. Use once the symptoms are known, to"
        " check a suspicion against what happened before. `earlier_answers` are Kortex' own of"
        " this channel: not confirmed, no evidence.",
        (HistoryInput, HistoryOutput),
        "incidents",
        ProductScope(("product",), narrows=True),
        "investigate",
        "recommend",
        timeouts=LOOKUP,
    )

    async def execute(
        self, arguments: HistoryInput, call: CallContext, caps: Capabilities
    ) -> HistoryOutput:
        when = (
            parse_time_range(arguments.time_range, call.now, LONGEST_RANGE)
            if arguments.time_range
            else None
        )
        found = await bound(caps.incidents, "incidents").search(
            IncidentQuery(
                text=arguments.query,
                channel=call.channel_id or call.channel,
                product=arguments.product or "",
                interval=when.interval if when else None,
                limit=arguments.limit,
            )
        )
        here = [one for one in found if _is_visible(call, one)]
        told = [one for one in here if not one.is_own_answer]
        return HistoryOutput(
            incidents=[_entry(one) for one in told if not _goes_on(one, call.now)],
            ongoing=[_entry(one) for one in told if _goes_on(one, call.now)] or None,
            earlier_answers=[_answer(one) for one in here if one.is_own_answer] or None,
            range=when.text if when else None,
            notes=(when.notes or None) if when else None,
        )

    def summarise(self, output: HistoryOutput, arguments: HistoryInput) -> str:
        words = " ".join(clean_text(arguments.query).split())
        going_on = f", {len(output.ongoing)} ongoing" if output.ongoing else ""
        answers = len(output.earlier_answers or ())
        own = f", {counted(answers, 'earlier answer')} (not confirmed)" if answers else ""
        past = counted(len(output.incidents), "past incident")
        return f'{past}{going_on}{own}, "{words[:40]}"'


def _is_visible(call: CallContext, one: PastIncident) -> bool:
    """Whether the channel may see it. An incident without a product may belong to any team.

    Own answers come from this channel alone. A strict channel, such as one of another workspace,
    sees no incident that could belong to another team's product.
    """
    if one.product:
        return within(call, one.product)
    return one.is_own_answer or call.reading is not Reading.STRICT


def _goes_on(one: PastIncident, now: datetime) -> bool:
    return one.closed_at is None and now - one.opened_at <= LONGEST_ONGOING


def _entry(one: PastIncident) -> IncidentEntry:
    return entry_of(IncidentEntry, one, resolution_summary=one.resolution)


def _answer(one: PastIncident) -> EarlierAnswer:
    return entry_of(
        EarlierAnswer,
        one,
        question=one.title,
        asked_at=one.opened_at,
        answered_at=one.closed_at,
        answer=one.resolution,
    )
