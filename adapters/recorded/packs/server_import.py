"""Loads a case into real servers, so that the production adapters can read it.

Everything of one run has its own value of the label `MARK`; nothing is deleted. Raises NotLoaded when
the server refuses the data or loses it.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

import httpx
import orjson

from adapters.http.client import answer_to
from adapters.http.errors import check_status, tool_errors
from adapters.observe.backend import Backend
from adapters.observe.instants import seconds_text
from adapters.observe.prometheus_answer import vector_of
from adapters.observe.query_size import runs
from adapters.recorded.packs.recording import RecordedLine, RecordedSeries
from tools.errors import CapabilityUnavailable, UpstreamFailed

MARK: Final = "kortex_case"
_BATCH_BYTES: Final = 2 << 20  # Loki takes 4 MB at once by default, VictoriaMetrics lines of 10 MB
_PATIENCE_S: Final = 15.0  # until imported data can be queried
_PAUSE_S: Final = 0.2
_SEND_S: Final = 60.0
_MAX_ANSWER: Final = 1 << 20
_MAX_WORDS: Final = 300  # of a server's own explanation
_NOT_A_LABEL: Final = re.compile(r"\W")


class NotLoaded(Exception):
    """A server does not hold the case; the text says why and what to do."""


async def load_metrics(
    client: httpx.AsyncClient,
    series: Sequence[RecordedSeries],
    mark: str,
    patience_s: float = _PATIENCE_S,
) -> None:
    """Into VictoriaMetrics, through `/api/v1/import`, and wait until all of it can be read.

    `client` reads only what carries the mark (`extra_filters[]` among its own parameters).
    """
    kept = [one for one in series if one.points]
    for batch in runs((_import_line(one, mark) for one in kept), len, _BATCH_BYTES):
        await _sent(client, "/api/v1/import", b"\n".join(batch), "VictoriaMetrics")
    instants = {(one.name, *sorted(one.labels.items()), at) for one in kept for at, _ in one.points}
    if not instants:
        return
    last = max(one.points[-1][0] for one in kept)
    first = min(one.points[0][0] for one in kept)
    counted = f'sum(count_over_time({{{MARK}="{mark}"}}[{round(last - first) + 60}s]))'
    form = {"query": counted, "time": seconds_text(datetime.fromtimestamp(last + 1, UTC))}
    backend = Backend("VictoriaMetrics", client)

    async def are_there() -> bool:
        with _told("VictoriaMetrics"):
            await backend.get("/internal/force_flush", {})
            rows = vector_of(await backend.post_form("/api/v1/query", form))
        return sum(value for _, value in rows) >= len(instants)

    await _until(
        are_there,
        patience_s,
        f"VictoriaMetrics does not hold all of the {len(instants)} samples: is its retention long "
        "enough for the day they are of (-retentionPeriod=100y)?",
    )


async def load_logs(client: httpx.AsyncClient, lines: Sequence[RecordedLine], mark: str) -> None:
    """Into Loki, through its push API."""
    for batch in runs(lines, _line_size, _BATCH_BYTES):
        await _sent(client, "/loki/api/v1/push", _push_body(batch, mark), "Loki")


def product_label(lines: Sequence[RecordedLine], products: Sequence[str]) -> str:
    """The label that names a product most often, as Loki is given it; `service` where none does."""
    counts: dict[str, int] = {}
    wanted = set(products)
    for line in lines:
        for name, value in line.labels.items():
            if value in wanted:
                counts[name] = counts.get(name, 0) + 1
    return _label(max(counts, key=lambda name: counts[name], default="service"))


def _import_line(one: RecordedSeries, mark: str) -> bytes:
    metric = {**one.labels, "__name__": one.name, MARK: mark}
    values = [value for _, value in one.points]
    instants = [round(at * 1000) for at, _ in one.points]
    return orjson.dumps({"metric": metric, "values": values, "timestamps": instants})


def _push_body(lines: Sequence[RecordedLine], mark: str) -> bytes:
    streams: dict[tuple[tuple[str, str], ...], list[object]] = {}
    for line in lines:
        labels = {_label(name): value for name, value in line.labels.items()}
        of = tuple(sorted({**labels, MARK: mark}.items()))
        more = {"trace_id": line.trace_id} if line.trace_id else {}
        streams.setdefault(of, []).append([str(line.ts_ns), line.text, more])
    rows = [{"stream": dict(labels), "values": values} for labels, values in streams.items()]
    return orjson.dumps({"streams": rows})


def _label(name: str) -> str:
    """As Loki wants it: letters, digits, underscores."""
    plain = _NOT_A_LABEL.sub("_", name)
    return f"_{plain}" if plain[:1].isdigit() else plain


def _line_size(line: RecordedLine) -> int:
    return len(line.text) + 64


async def _sent(client: httpx.AsyncClient, path: str, body: bytes, name: str) -> None:
    headers = {"Content-Type": "application/json"}
    request = client.build_request("POST", path, content=body, headers=headers)
    with _told(name), tool_errors(name):
        async with asyncio.timeout(_SEND_S):
            response, answer = await answer_to(client, request, _MAX_ANSWER)
        check_status(response, " ".join(answer[:_MAX_WORDS].decode("utf-8", "replace").split()))


@contextmanager
def _told(name: str) -> Iterator[None]:
    try:
        yield
    except (CapabilityUnavailable, UpstreamFailed) as error:
        raise NotLoaded(f"{name} does not take the case: {error.message}") from error


async def _until(is_so: Callable[[], Awaitable[bool]], patience_s: float, otherwise: str) -> None:
    try:
        async with asyncio.timeout(patience_s):
            while not await is_so():  # noqa: ASYNC110 - a server cannot tell us
                await asyncio.sleep(_PAUSE_S)
    except TimeoutError as error:
        raise NotLoaded(otherwise) from error
