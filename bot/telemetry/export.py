"""What is told to a collector: spans as they end, metrics by the clock; a turn never waits for it."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import structlog

from adapters.errors import AdapterError
from bot.telemetry.metrics import Metrics
from bot.telemetry.otlp import Encoder, refused_in
from bot.telemetry.spans import FinishedSpan, Spans

log = structlog.get_logger(__name__)

FIRST_WAIT_S: Final = 4.0  # after a request that failed; each further one doubles it
MOST_WAITING: Final = 4_096  # spans; the oldest go first where a collector is away for long
BATCH: Final = 512  # as the specification's batch processor
SEND_S: Final = 15.0  # of one request, whatever the client does
LAST_WORDS_S: Final = 3.0
LONGEST_WAIT_S: Final = 300.0
# What the protocol calls retryable, beside a connection that failed; a 500 is not.
_RETRYABLE: Final = frozenset({None, 429, 502, 503, 504})

TRACES: Final = "/v1/traces"
METRICS: Final = "/v1/metrics"


class Collector(Protocol):
    """Where requests go."""

    async def send(self, path: str, body: bytes) -> bytes:
        """One request; the answer. Raises AdapterError."""
        ...


class Export(Spans):
    """`Spans` that are sent on. `run` is the clock's, on one task at a time."""

    def __init__(
        self,
        collector: Collector,
        encoder: Encoder,
        metrics: Metrics,
        *,
        sample_ratio: float,
        with_content: bool,
        metrics_every_s: float | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`metrics_every_s` None: metrics are only scraped."""
        self._collector = collector
        self._encoder = encoder
        self._metrics = metrics
        self._bound = round(sample_ratio * 2**64)
        self._with_content = with_content
        self._metrics_every_s = metrics_every_s
        self._clock = clock
        self._waiting: deque[FinishedSpan] = deque()
        self._since_ns = time.time_ns()
        self._metrics_due = clock() + (metrics_every_s or 0.0)
        self._next_try = clock()
        self._failures = 0
        self._refused: dict[str, str] = {}

    @property
    def with_content(self) -> bool:
        """Whether the operator asked for what was said."""
        return self._with_content

    def takes(self, trace_id: bytes) -> bool:
        """By the trace's id, so that a turn is kept whole."""
        return int.from_bytes(trace_id[8:], "big") < self._bound

    def ended(self, span: FinishedSpan) -> None:
        """Keep it until the next tick; what is too much is counted and gone."""
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.popleft()
            self._metrics.telemetry_dropped(1)
        self._waiting.append(span)

    async def run(self) -> None:
        """Send what is due. What the collector refuses for now is tried again, later each time."""
        if self._clock() < self._next_try:
            return
        while self._waiting and await self._send_spans():
            pass
        every_s = self._metrics_every_s
        if every_s is not None and not self._failures and self._clock() >= self._metrics_due:
            self._metrics_due = self._clock() + every_s
            await self._send_metrics()

    async def aclose(self) -> None:
        """The last words, for as long as that may take."""
        self._next_try = self._metrics_due = self._clock()
        try:
            async with asyncio.timeout(LAST_WORDS_S):
                await self.run()
        except TimeoutError:
            self._metrics.telemetry_dropped(len(self._waiting))

    async def _send_spans(self) -> bool:
        batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
        try:
            body = await asyncio.to_thread(self._encoder.spans, batch)
            sent = await self._send(TRACES, body)
        except asyncio.CancelledError:
            self._put_back(batch)
            raise
        if sent is None:
            self._put_back(batch)
            return False
        self._metrics.telemetry_dropped(len(batch) if sent < 0 else sent)
        return True

    async def _send_metrics(self) -> None:
        now_ns, registry = time.time_ns(), self._metrics.registry
        body = await asyncio.to_thread(self._encoder.metrics, registry, self._since_ns, now_ns)
        await self._send(METRICS, body)

    async def _send(self, path: str, body: bytes) -> int | None:
        """How many it did not take; -1: nothing of it, ever; None: nothing of it now."""
        try:
            async with asyncio.timeout(SEND_S):
                answer = await self._collector.send(path, body)
        except (AdapterError, TimeoutError) as error:
            return self._failed(path, error)
        if self._failures:
            log.info("telemetry.collector.back", failures=self._failures)
        self._failures = 0
        self._refused.pop(path, None)
        return refused_in(answer, of_metrics=path == METRICS)

    def _failed(self, path: str, error: AdapterError | TimeoutError) -> int | None:
        if isinstance(error, AdapterError) and not _is_worth_retrying(error):
            if self._refused.get(path) != error.message:  # once, not every two seconds
                log.warning("telemetry.refused", path=path, error=error.message)
            self._refused[path] = error.message
            return -1
        if not self._failures:
            log.warning("telemetry.collector.away", error=str(error) or "no answer in time")
        self._failures += 1
        asked = error.retry_after_s if isinstance(error, AdapterError) else None
        wait_s = asked if asked is not None else FIRST_WAIT_S * 2 ** min(self._failures - 1, 9)
        self._next_try = self._clock() + min(wait_s, LONGEST_WAIT_S)
        return None

    def _put_back(self, batch: list[FinishedSpan]) -> None:
        room = MOST_WAITING - len(self._waiting)
        kept = batch[len(batch) - room :] if room < len(batch) else batch
        self._metrics.telemetry_dropped(len(batch) - len(kept))
        self._waiting.extendleft(reversed(kept))


def _is_worth_retrying(error: AdapterError) -> bool:
    return error.retryable and error.status in _RETRYABLE
