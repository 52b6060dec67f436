"""Logs on Grafana Loki 2.9+ (behaviour observed on 3.7).

Loki has no cursor and sorts only within a stream: `log_page` makes pages of its answers.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import httpx

from adapters.observe.backend import Answer, Backend
from adapters.observe.cursor import CursorCodec, Position, page_size, resume, suspend
from adapters.observe.instants import check_order, to_ns
from adapters.observe.line_filter import as_pipeline
from adapters.observe.log_entry import Newest, lines_of, unlevelled
from adapters.observe.log_page import next_page
from adapters.observe.log_sweep import LogSweep, Share
from adapters.observe.loki_answer import check, level_stages, streams_of
from adapters.observe.loki_counts import LokiCounts, pipeline
from adapters.observe.loki_places import ASSUMED, LokiPlaces
from adapters.observe.loki_selector import Selecting, Selector, check_product
from tools.capabilities import (
    Interval,
    LogPage,
    LogQuery,
    LogsFound,
    LogSweepQuery,
    SweptLogs,
)
from tools.errors import InvalidArguments
from tools.outside_json import Unread

_MAX_ENTRIES: Final = 5000  # Loki's default max_entries_limit_per_query
_LOWER_LIMIT: Final = re.compile(r"max_entries_limit \((\d{1,18}) > (\d{1,9})\)")
# Without it every (trace id, level) becomes a stream of its own, with its labels repeated.
_CATEGORIZE: Final = {"X-Loki-Response-Encoding-Flags": "categorize-labels"}
_SHOWN_VALUES: Final = 20
_SAMPLE: Final = 20
_OF_A_LOOK: Final = 2  # requests: the names of the labels, and the lines found by them


class LokiLogs:
    """Log lines from Loki.

    `selector` is how a product is found, e.g. `{service_name="$product"}`; empty: by the first
    label that holds its name. ValueError when it would match everything. `org_id` is the tenant.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        codec: CursorCodec,
        selector: str = "",
        org_id: str = "",
        preferred_labels: Sequence[str] = (),
    ) -> None:
        self._backend = Backend("Loki", client, org_id)
        self._codec = codec
        template = Selector(selector) if selector else None
        self._places = LokiPlaces(self._backend, template, preferred_labels)
        self._max_entries = _MAX_ENTRIES  # until the server says less
        counts = LokiCounts(self._backend, self._places)
        self._sweeps = LogSweep(self._places, counts, self._newest_of, _MAX_ENTRIES)

    async def query(self, query: LogQuery) -> LogPage:
        """Newest first. `total_matches` is known only when the first page is the last."""
        filters = as_pipeline(query.filter)
        levels = level_stages(query.min_level) if query.min_level else ""
        check_product(query.product)
        position = resume(query, self._codec)
        selector = await self._selector(query)
        stages = " ".join(stage for stage in (selector, levels, filters) if stage)
        size = page_size(query)
        page = await next_page(partial(self._newest, stages), position, size, _MAX_ENTRIES)
        lines = lines_of(page.entries)
        unread = Unread(page.unread).notes("log lines")
        if not lines and position.last_ns is None:
            await self._check_there(query)
            notes = await self._unlevelled(selector, position) if levels else ()
            return LogPage((), total_matches=0, notes=(*notes, *unread))
        if page.behind is None:
            total = len(lines) if position.last_ns is None else None
            return LogPage(lines, total_matches=total, notes=unread)
        return LogPage(lines, suspend(query, page.behind, self._codec), notes=unread)

    async def discover(self, products: Sequence[str], interval: Interval) -> LogsFound:
        """Which of these have lines; all values of the first label that names products else."""
        check_order(interval)
        wanted = tuple(dict.fromkeys(products))
        if not wanted:
            seen = await self._places.values(interval)
            wanted = tuple(seen[0].values if seen else ())
        there = await self._places.with_lines(wanted, interval)
        labels = {label: list(there.values()).count(label) for label in sorted({*there.values()})}
        without = tuple(product for product in wanted if product not in there)
        return LogsFound(wanted, without, labels, tuple(self._places.notes), _OF_A_LOOK)

    async def count(self, queries: Sequence[LogSweepQuery]) -> Sequence[Mapping[str, int]]:
        """How many lines match, by product, of each query, in one request."""
        return await self._sweeps.count(queries)

    async def sweep(self, query: LogSweepQuery) -> SweptLogs:
        return await self._sweeps.read(query)

    async def _newest_of(self, share: Share[Selecting], query: LogSweepQuery) -> Newest:
        position = Position(to_ns(query.interval.start), to_ns(query.interval.end))
        logql = f"{share.way.of(share.products)} {pipeline(query)}".strip()
        return await self._newest(logql, position, share.limit)

    async def _newest(self, logql: str, position: Position, limit: int) -> Newest:
        """At most `limit` entries, the newest. Of a tie it is not defined which."""
        # Loki's end is exclusive: one past the last timestamp reads its other lines again.
        end_ns = position.end_ns if position.last_ns is None else position.last_ns + 1
        wanted = min(self._max_entries, limit)
        answer = await self._ask(logql, position.start_ns, end_ns, wanted)
        lower = _LOWER_LIMIT.search(answer.words()) if answer.status == 400 else None
        if lower is not None and int(lower[2]) < wanted:
            self._max_entries = int(lower[2])
            answer = await self._ask(logql, position.start_ns, end_ns, self._max_entries)
        check(answer)
        return streams_of(answer, min(limit, self._max_entries))

    async def _ask(self, logql: str, start_ns: int, end_ns: int, limit: int) -> Answer:
        params = {
            "query": logql,
            "start": str(start_ns),
            "end": str(end_ns),
            "limit": str(limit),
            "direction": "backward",
        }
        return await self._backend.get("/loki/api/v1/query_range", params, _CATEGORIZE)

    async def _selector(self, query: LogQuery) -> str:
        ways = await self._places.selecting([query.product], query.interval)
        if not ways:
            await self._check_there(query)
            raise InvalidArguments(f"no label of Loki's streams holds {query.product!r}")
        way, members = ways[0]
        return way.of(members)

    async def _unlevelled(self, selector: str, position: Position) -> tuple[str, ...]:
        """Nothing of a level may mean that nothing states its level."""
        sample = await self._newest(selector, position, _SAMPLE)
        return unlevelled(lines_of(sample.entries))

    async def _check_there(self, query: LogQuery) -> None:
        """Loki answers a misspelt product with nothing at all; say what there is instead."""
        if await self._places.with_lines([query.product], query.interval):
            return
        if self._places.is_assumed:
            label = ASSUMED.label
            raise InvalidArguments(
                f"Loki does not list its labels, but no log stream has {label}={query.product!r}; "
                "set `selector` in [observe.logs]"
            )
        seen = await self._places.values(query.interval)
        first = next((one for one in seen if one.values), None)
        if first is None:
            return
        shown = ", ".join(first.values[:_SHOWN_VALUES])
        raise InvalidArguments(
            f"no log stream has {first.asked.label}={query.product!r} within a day of this range; "
            f"there are {len(first.values)} values: {shown}"
        )
