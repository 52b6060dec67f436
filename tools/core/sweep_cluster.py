"""core__sweep_cluster: faults in Kubernetes, with their reasons, and its warnings."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from tools.analysis.cluster.datastores import datastores
from tools.analysis.cluster.finding import Finding, Impact
from tools.analysis.cluster.inventory import Inventory, owner_of, workload_of_pod
from tools.analysis.cluster.mechanisms import mechanism_of
from tools.analysis.cluster.nodes import lost_nodes
from tools.analysis.cluster.pods import is_working
from tools.analysis.cluster.survey import concerns, findings
from tools.capabilities import CallContext, Capabilities
from tools.cluster_objects import ClusterEvent
from tools.contract import ToolOutput
from tools.core.built_in import bound, counted, entry_of, read_only
from tools.core.cluster_reading import ALWAYS, NOT_READ_BESIDE, ClusterReading
from tools.core.sweep_arguments import SWEEP_SCOPE, SweepInput, products_of, window_of
from tools.log_templates import named_in
from tools.output import clean_text, clean_words
from tools.timerange import range_text

MOST_ROWS: Final = 20
MOST_WARNINGS: Final = 10
MOST_RISKS: Final = 5
MOST_CHARS: Final = 300
WHOLE_ROWS: Final = 5  # of the gravest the reason is whole: it often comes last
MOST_REASON: Final = 800
GOES_ON: Final = timedelta(minutes=10)  # since when a warning was not repeated
# Kinds that are checked themselves: without a finding, such an object is healthy now.
ASSESSED: Final = frozenset(
    {"Pod", "Node", "ReplicaSet", "Endpoints", "EndpointSlice", *(kind for _, kind in ALWAYS)}
)
EVENTS_LAST: Final = timedelta(hours=1)  # the API server's default


class IllObject(ToolOutput):
    """An object that does not do its work now. `product` is empty when none fits its name.

    `impact` is `down`, `degraded`, or `unsure` where it may be meant so; `detail` is the reason.
    """

    kind: str
    name: str
    product: str
    state: str
    mechanism: str
    impact: str
    detail: str = ""


class WarningSeen(ToolOutput):
    """A warning event beyond `ill`. `over`: its object is healthy now."""

    ts: str | None = None
    object: str
    product: str
    reason: str
    message: str
    mechanism: str
    count: int
    over: bool


class DatastoreSeen(ToolOutput):
    """A product that stores or queues data. `is_new`: its newest pod was created within the hour."""

    product: str
    technology: str
    is_new: bool


class ClusterSweep(ToolOutput):
    """Current faults, the worst first, and the warnings since before the window, newest first.

    `risks` do no harm yet. `unread` names the kinds that were not read, and why.
    """

    range: str
    ill: list[IllObject]
    warnings: list[WarningSeen]
    risks: list[str]
    pods: dict[str, str]
    nodes: str
    datastores: list[DatastoreSeen]
    others_ill: int
    unread: list[str]
    requests: int
    truncated: bool


class SweepCluster:
    contract = read_only(
        "sweep_cluster",
        "Problems in Kubernetes for all products, with the reason: pods, workloads, Services,"
        " quotas, volumes, nodes; and what it warns of.",
        (SweepInput, ClusterSweep),
        "kubernetes",
        SWEEP_SCOPE,
        "investigate",
    )

    async def execute(
        self, arguments: SweepInput, call: CallContext, caps: Capabilities
    ) -> ClusterSweep:
        cluster = bound(caps.kubernetes, "kubernetes")
        window, products = window_of(arguments, call), products_of(arguments, call)
        reading = ClusterReading(cluster)
        inventory = await reading.inventory(products, call.now)
        # Thousands of objects: not while the event loop waits.
        everything = await asyncio.to_thread(findings, inventory)
        is_down = any(one.impact is Impact.DOWN for one in concerns(everything))
        if not is_down:
            inventory = await reading.beside(inventory)
            everything = await asyncio.to_thread(findings, inventory)
        own = list(concerns(everything))
        ill = await reading.with_last_lines([one for one in own if one.impact is not Impact.RISK])
        risks = [one for one in own if one.impact is Impact.RISK]
        since = min(window.start, window.end - EVENTS_LAST).timestamp()
        recent = [
            event for event in inventory.events if not event.at or event.at.timestamp() >= since
        ]
        warnings = [
            _warning(event, product, call.now) for event, product in _untold(recent, ill, products)
        ]
        nodes, lost = len(inventory.of("Node")), len(lost_nodes(inventory))
        return ClusterSweep(
            range=range_text(window),
            ill=[_row(one, place) for place, one in enumerate(ill[:MOST_ROWS])],
            warnings=warnings[:MOST_WARNINGS],
            risks=[clean_words(one.reason, MOST_CHARS) for one in risks[:MOST_RISKS]],
            pods=_counted(inventory),
            nodes=f"{nodes - lost} of {nodes} ready" if "Node" in inventory.objects else "not read",
            datastores=[entry_of(DatastoreSeen, one) for one in datastores(inventory)],
            others_ill=sum(one.impact in {Impact.DOWN, Impact.DEGRADED} for one in everything)
            - sum(one.impact in {Impact.DOWN, Impact.DEGRADED} for one in own),
            unread=[*reading.notes(), *([NOT_READ_BESIDE] if is_down else [])],
            requests=reading.requests,
            truncated=len(ill) > MOST_ROWS or len(warnings) > MOST_WARNINGS,
        )

    def summarise(self, output: ClusterSweep, arguments: SweepInput) -> str:
        del arguments
        return f"{counted(len(output.ill), 'problem')}, {counted(len(output.warnings), 'warning')}"


def _row(one: Finding, place: int) -> IllObject:
    most = MOST_REASON if place < WHOLE_ROWS else MOST_CHARS
    alike = f" (and {counted(one.objects - 1, 'more pod')} alike)" if one.objects > 1 else ""
    return IllObject(
        kind=clean_text(one.kind),
        name=clean_text(one.name),
        product=one.product,
        state=clean_words(one.state, MOST_CHARS),
        mechanism=one.mechanism,
        impact=one.impact.value,
        detail=clean_words(one.reason, most) + alike,
    )


def _counted(cluster: Inventory) -> dict[str, str]:
    counted: dict[str, tuple[int, int]] = {}
    for pod in cluster.of("Pod"):
        product = cluster.product_of(pod, workload_of_pod(pod)[1])
        if product:
            well, of = counted.get(product, (0, 0))
            counted[product] = well + is_working(pod), of + 1
    return {name: f"{well} of {of} well" for name, (well, of) in counted.items()}


def _untold(
    events: Sequence[ClusterEvent], ill: Sequence[Finding], products: Sequence[str]
) -> Iterator[tuple[ClusterEvent, str]]:
    """Warnings of the products, and of nodes, that no finding covers; newest first."""
    for event in events:
        if event.type == "Normal":
            continue
        product = owner_of(event.name, products) or next(
            iter(named_in(event.message, products)), ""
        )
        if (product or event.kind == "Node") and not _is_told(event, product, ill):
            yield event, product


def _is_told(event: ClusterEvent, product: str, ill: Sequence[Finding]) -> bool:
    return any(
        event.name == one.name
        or event.name.startswith(f"{one.workload}-")
        or (bool(product) and product == one.product)
        for one in ill
    )


def _warning(event: ClusterEvent, product: str, now: datetime) -> WarningSeen:
    return entry_of(
        WarningSeen,
        event,
        ts=event.at,
        object=f"{event.kind}/{event.name}",
        product=product,
        message=clean_text(event.message)[:MOST_CHARS],
        mechanism=mechanism_of(event.reason, event.message),
        over=event.kind in ASSESSED or (event.at is not None and now - event.at > GOES_ON),
    )
