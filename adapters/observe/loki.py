"""Logs on Grafana Loki 2.9+ (behaviour observed on 3.7).

Loki has no cursor and sorts only within a stream: pages are put in order here, and continued from
the last timestamp with hashes of what was delivered at it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import httpx

from adapters.observe.backend import Answer, Backend
from adapters.observe.cursor import CursorCodec, Position, page_size, resume, suspend
from adapters.observe.levels import at_least
from adapters.observe.line_filter import as_pipeline
from adapters.observe.loki_answer import Entry, label_values_of, lines_of, streams_of
from adapters.observe.loki_selector import Selector
from tools.capabilities import LogPage, LogQuery
from tools.errors import InvalidArguments, UpstreamFailed

_MAX_ENTRIES: Final = 5000  # Loki's default max_entries_limit_per_query
# Without it every (trace id, level) becomes a stream of its own, with its labels repeated.
_CATEGORIZE: Final = {"X-Loki-Response-Encoding-Flags": "categorize-labels"}
_LOOK_BACK_NS: Final = 24 * 3600 * 1_000_000_000  # where to look for a product that has no lines
_SHOWN_VALUES: Final = 20


class LokiLogs:
    """Log lines from Loki.

    `selector` is how a product is found, e.g. `{service_name="$product"}`; ValueError when it
    would match everything. `org_id` is the tenant.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        codec: CursorCodec,
        selector: str = '{service_name="$product"}',
        org_id: str = "",
    ) -> None:
        self._backend = Backend("Loki", client, org_id)
        self._codec = codec
        self._selector = Selector(selector)

    async def query(self, query: LogQuery) -> LogPage:
        """Newest first. `total_matches` is known only when the first page is the last."""
        logql = self._logql(query)
        position = resume(query, self._codec)
        size = page_size(query)
        limit = min(_MAX_ENTRIES, size + len(position.delivered) + 1)
        entries = await self._newest(logql, position, limit)
        fresh = sorted(_undelivered(entries, position))
        if not fresh and position.last_ns is None:
            await self._check_product(query.product, position)
        page = fresh[:size]
        lines = lines_of(page)
        if len(fresh) <= size:
            return LogPage(lines, total_matches=len(page) if position.last_ns is None else None)
        return LogPage(lines, suspend(query, _after(position, page), self._codec))

    def _logql(self, query: LogQuery) -> str:
        stages = [self._selector.of(query.product)]
        if query.min_level:
            # The level that Loki detects at ingest is structured metadata, not a stream label: in
            # the selector it would match nothing. Pushed levels keep their case.
            spellings = "|".join(sorted(at_least(query.min_level)))
            stages.append(f'| detected_level=~"(?i)({spellings})"')
        stages.append(as_pipeline(query.filter))
        return " ".join(stage for stage in stages if stage)

    async def _newest(self, logql: str, position: Position, limit: int) -> Sequence[Entry]:
        # Loki's end is exclusive: one past the last timestamp reads its other lines again.
        end_ns = position.end_ns if position.last_ns is None else position.last_ns + 1
        params = {
            "query": logql,
            "start": str(position.start_ns),
            "end": str(end_ns),
            "limit": str(limit),
            "direction": "backward",
        }
        answer = await self._backend.get("/loki/api/v1/query_range", params, _CATEGORIZE)
        _check(answer)
        return streams_of(answer)

    async def _check_product(self, product: str, position: Position) -> None:
        """Loki answers a misspelt product with nothing at all; say what there is instead."""
        params = {
            "start": str(min(position.start_ns, position.end_ns - _LOOK_BACK_NS)),
            "end": str(position.end_ns),
        }
        label = self._selector.label
        answer = await self._backend.get(f"/loki/api/v1/label/{label}/values", params)
        values = label_values_of(answer) if answer.ok else []
        if values and not any(self._selector.matches(product, value) for value in values):
            shown = ", ".join(values[:_SHOWN_VALUES])
            raise InvalidArguments(
                f"no log stream has {label}={product!r} within a day of this range; "
                f"there are {len(values)} values: {shown}"
            )


def _undelivered(entries: Sequence[Entry], position: Position) -> Sequence[Entry]:
    known = frozenset(position.delivered)
    return [
        entry for entry in entries if entry.ts_ns != position.last_ns or entry.hash() not in known
    ]


def _after(position: Position, page: Sequence[Entry]) -> Position:
    last_ns = page[-1].ts_ns
    here = tuple(entry.hash() for entry in page if entry.ts_ns == last_ns)
    earlier = position.delivered if last_ns == position.last_ns else ()
    return replace(position, last_ns=last_ns, delivered=earlier + here)


def _check(answer: Answer) -> None:
    """Loki's errors are plain text; its parser's words are good enough to hand on."""
    if answer.ok:
        return
    words = answer.words()
    if answer.status == 400 and "parse error" in words:
        raise InvalidArguments(f"Loki does not understand the filter: {words}")
    raise UpstreamFailed(words or "no explanation", answer.status)
