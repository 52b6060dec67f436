"""The other workers of one service, asked over loopback: one scrape and one probe speak for all.

Requests to the shared port reach one worker or another. Each listens at a port of its own beside it,
where it speaks for itself.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import orjson
from aiohttp import web
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from adapters.errors import AdapterError
from adapters.http import http_client, mapped_errors
from adapters.http_answer import WholeAnswer
from bot.web.health import Note

LOOPBACK: Final = "127.0.0.1"
# A probe's part has two seconds, and a worker's own parts have them too: who takes longer is at least
# not well. Prometheus waits ten.
ASK_S: Final = 1.8
_LABEL: Final = "worker"


@dataclass(frozen=True, slots=True)
class Siblings:
    """Which worker this is, the port of all of them, and the one on loopback of each."""

    number: int
    port: int
    ports: Sequence[int]


class SiblingCalls:
    """Asks the others. Close it at the end."""

    def __init__(self, siblings: Siblings) -> None:
        self._siblings = siblings
        self._http = http_client(connect_s=ASK_S, read_s=ASK_S)

    async def close(self) -> None:
        """Let the connections go."""
        await self._http.aclose()

    async def asked(self, path: str) -> Mapping[int, WholeAnswer | None]:
        """The answer of each of the others by its number; None for one that gave none in time."""
        ports = dict(enumerate(self._siblings.ports))
        del ports[self._siblings.number]
        async with asyncio.TaskGroup() as group:
            asked = {
                number: group.create_task(self._answer(f"http://{LOOPBACK}:{port}{path}"))
                for number, port in ports.items()
            }
        return {number: task.result() for number, task in asked.items()}

    async def _answer(self, url: str) -> WholeAnswer | None:
        try:
            async with asyncio.timeout(ASK_S):
                with mapped_errors("another worker"):
                    return await self._http.get(url)
        except (AdapterError, TimeoutError):
            return None

    def metrics(
        self, registry: CollectorRegistry
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        """`/metrics` of all workers: every sample with the label `worker`.

        One that does not answer is missing, as a replica that is down would be.
        """

        async def handle(_request: web.Request) -> web.Response:
            others = await self.asked("/metrics")
            texts = {n: found.text for n, found in others.items() if found is not None}
            body = await asyncio.to_thread(_all_of, self._siblings.number, registry, texts)
            return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

        return handle

    async def readiness(self) -> str | Note | None:
        """Why another worker is not ready. One that does not listen gets no requests either."""
        others = await self.asked("/readyz")
        silent = [number for number, found in others.items() if found is None]
        unready = {number: found for number, found in others.items() if found and found.is_error}
        if unready:
            return "; ".join(f"worker {n}: {_unready(each)}" for n, each in unready.items())
        if silent:
            all_of = len(self._siblings.ports)
            return Note(f"{all_of - len(silent)} of {all_of} workers answer")
        return None


def _unready(answer: WholeAnswer) -> str:
    try:
        parts = orjson.loads(answer.content)["parts"].items()
        return ", ".join(f"{name}: {part['detail']}" for name, part in parts if not part["ok"])
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        return f"answers {answer.status_code}"


class _Merged(Collector):
    def __init__(self) -> None:
        self.families: dict[str, Metric] = {}

    def add(self, number: int, text: str) -> None:
        # Nobody but several workers reads what it writes.
        from prometheus_client.parser import text_string_to_metric_families

        for family in text_string_to_metric_families(text):
            merged = self.families.setdefault(
                family.name, Metric(family.name, family.documentation, family.type)
            )
            for each in family.samples:
                labels = {**each.labels, _LABEL: str(number)}
                merged.add_sample(each.name, labels, each.value, each.timestamp)

    def collect(self) -> Sequence[Metric]:
        return [*self.families.values()]


def _all_of(own: int, registry: CollectorRegistry, others: Mapping[int, str]) -> bytes:
    texts = {**others, own: generate_latest(registry).decode()}
    merged = _Merged()
    for number in sorted(texts):
        merged.add(number, texts[number])
    everything = CollectorRegistry()
    everything.register(merged)
    return generate_latest(everything)
