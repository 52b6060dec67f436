"""Charts that people ask for: read by the tools of their channel, as in an answer to them."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

import orjson
from pydantic import JsonValue

from adapters.llm.messages import ToolCall
from bot.chat.stopping import Signal
from bot.chat.tool_calls import TurnTools
from bot.chat.turn_permissions import RolesOf
from bot.domain.channel import ChannelNow
from bot.domain.chart import Chart
from bot.domain.chart_request import Charted, ChartRequest
from bot.domain.charted import charts_of
from bot.domain.ids import SessionId, TurnId
from bot.domain.tenancy import TenantOf, scope_of
from bot.domain.turn_events import Evidence
from tools.capabilities import CallContext, Clock
from tools.errors import InvalidArguments
from tools.records import ToolOutcome
from tools.timerange import TimeRange, parse_time_range

GET: Final = "core__get_metrics"

COMPARE: Final = "core__compare_to_baseline"

FIND: Final = "core__find_metrics"

LONGEST_COMPARED: Final = timedelta(hours=24)

MOST_NAMES: Final = 20

_NO_WORD: Final = re.compile(r"[\W_]+")


@dataclass(slots=True, eq=False, repr=False)
class ChartAnswers:
    """Over one process's tools."""

    tools: TurnTools
    channel_now: ChannelNow
    roles_of: RolesOf
    tenant_of: TenantOf
    clock: Clock

    async def chart(self, request: ChartRequest) -> Charted:
        """Never raises for a backend that is away. Raises StorageUnavailable."""
        at = await self._context(request)
        try:
            when = parse_time_range(request.time_range, at.now)
        except InvalidArguments as error:
            return Charted(f"No chart: {error.message}")
        charted, meant = await self._charted(request, when, at)
        if meant:
            charted, _ = await self._charted(replace(request, metric=meant), when, at)
        return charted

    async def _charted(
        self, request: ChartRequest, when: TimeRange, at: CallContext
    ) -> tuple[Charted, str]:
        """With the metric that was meant, where none has the name that was asked for."""
        asked: Mapping[str, JsonValue] = {
            "product": request.product,
            "metric_name": request.metric,
            "time_range": when.text,
        }
        is_short = when.interval.end - when.interval.start <= LONGEST_COMPARED
        async with asyncio.TaskGroup() as reading:
            course = reading.create_task(self._run(GET, at, **asked))
            past = reading.create_task(self._run(COMPARE, at, **asked)) if is_short else None
        read, compared = course.result(), past.result() if past else None
        drawn = _drawn(read, compared, asked)
        if drawn is not None:
            told = (compared if compared and compared.record.ok else read).summary
            return Charted(f"**{request.product}**: {told}, {request.time_range}", drawn), ""
        if not read.record.ok:
            why = read.record.message or "the metrics could not be read"
            return Charted(f"No chart: {why}"), ""
        found = await self._run(FIND, at, product=request.product, time_range=when.text)
        rows = _rows(found)
        names = [name for name, _ in rows]
        meant = (name for name, role in rows if _is_meant(request.metric, name, role))
        other = "" if request.metric in names else next(meant, "")
        return Charted(_nothing(request, names)), other

    async def _run(self, tool: str, at: CallContext, **arguments: JsonValue) -> ToolOutcome:
        call = ToolCall(f"{at.turn_id}:{tool}", tool, orjson.dumps(arguments).decode())
        return await self.tools.run(call, at, lambda _event: None, Signal())

    async def _context(self, request: ChartRequest) -> CallContext:
        place, person = request.place, request.person
        channel = await self.channel_now(place)
        roles = await self.roles_of(place, person)
        # A separate session: results are cached by session.
        own = f"chart:{place.team}:{place.channel}:{person.user}"
        return CallContext(
            actor=person.user,
            team=person.team,
            channel=channel.name,
            session_id=SessionId(own),
            session_name=channel.session_name,
            turn_id=TurnId(own),
            tool_call_id="",
            purpose=channel.rule.toolset,
            now=self.clock.now(),
            products=channel.rule.products,
            channel_id=scope_of(place.channel, self.tenant_of(place.team)),
            roles=roles.held,
            reading=channel.rule.tools_read,
        )


def _drawn(
    read: ToolOutcome, compared: ToolOutcome | None, asked: Mapping[str, JsonValue]
) -> Chart | None:
    charts = charts_of(Evidence.of(0, read), asked)
    past = charts_of(Evidence.of(0, compared), asked) if compared else ()
    if not charts:
        return None
    if not past or len(charts[0].lines) > 1:
        return charts[0]
    return replace(charts[0], usual=past[0].usual, since=past[0].since)


def _rows(found: ToolOutcome) -> Sequence[tuple[str, str]]:
    """The name and the role of each metric that was found."""
    try:
        rows = orjson.loads(found.content)["found"] if found.record.ok else []
        return [(str(row["name"]), str(row.get("role", ""))) for row in rows]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return []


def _is_meant(said: str, name: str, role: str) -> bool:
    """Whether people mean that metric: `p99_latency`, `errors`."""
    words = [word for word in _NO_WORD.split(said.casefold()) if word]
    return bool(words) and all(word in name.casefold() or word == role for word in words)


def _nothing(request: ChartRequest, found: Sequence[str]) -> str:
    said = f"No chart: {request.product} has no points of {request.metric}, {request.time_range}."
    names = list(dict.fromkeys(found))
    if not names:
        return f"{said} I see no other metric of it here."
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"{said} There are: {', '.join(f'`{name}`' for name in names[:MOST_NAMES])}{more}."
