"""core__sweep_cluster: pods, workloads and nodes that are ill, and what the cluster warns of."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from tools.analysis.cluster_state import (
    how_telling,
    mechanism_of,
    node_is_ill,
    owner_of,
    pod_is_ill,
    why_ill,
    workload_is_short,
)
from tools.capabilities import CallContext, Capabilities, Kubernetes
from tools.cluster_objects import ClusterEvent, ObjectQuery
from tools.contract import QUERY, Effect, ToolContract, ToolOutput
from tools.core.bound import bound
from tools.core.sweep_arguments import SWEEP_SCOPE, SweepInput, products_of, window_of
from tools.errors import InvalidArguments
from tools.log_templates import named_in
from tools.output import clean_text
from tools.timerange import instant_text, range_text

EVERYWHERE: Final = "*"
MOST_DESCRIBED: Final = 1  # each is a request; of the others the warnings tell
MOST_ROWS: Final = 30
MOST_CHARS: Final = 300
EVENTS_LAST: Final = timedelta(hours=1)  # the API server's default


class IllObject(ToolOutput):
    """A pod, workload or node that is not well now. `product` is empty when none fits its name."""

    kind: str
    name: str
    product: str
    state: str
    mechanism: str
    detail: str = ""


class WarningSeen(ToolOutput):
    """A warning event. `over`: what it was about is well now."""

    ts: str | None = None
    object: str
    product: str
    reason: str
    message: str
    mechanism: str
    count: int
    over: bool


class ClusterSweep(ToolOutput):
    """What is ill now, and the warnings since before the window, newest first."""

    range: str
    ill: list[IllObject]
    warnings: list[WarningSeen]
    pods: dict[str, str]
    nodes: str
    others_ill: int
    requests: int
    truncated: bool


class SweepCluster:
    """Reads tables of pods, Deployments and nodes, warnings, and the first ill pods."""

    contract = ToolContract(
        id="core__sweep_cluster",
        description=(
            "What is ill in Kubernetes for all products, with the mechanism, and what it warns of."
        ),
        input=SweepInput,
        output=ClusterSweep,
        effect=Effect.READ_ONLY,
        redaction=frozenset(ClusterSweep.model_fields),
        timeouts=QUERY,
        capabilities=frozenset({"kubernetes"}),
        products=SWEEP_SCOPE,
        toolsets=("investigate",),
    )

    async def execute(
        self, arguments: SweepInput, call: CallContext, caps: Capabilities
    ) -> ClusterSweep:
        """Raises InvalidArguments for a bad range; what Kubernetes raises."""
        cluster = bound(caps.kubernetes, "kubernetes")
        window, products = window_of(arguments, call), products_of(arguments, call)
        reading = _Reading(cluster, products)
        pods, short = await reading.pods(), await reading.workloads()
        nodes, well_nodes = await reading.nodes()
        ill = [*nodes, *pods, *short]
        since = min(window.start, window.end - EVENTS_LAST)
        warnings = await reading.warnings(since, {one.name for one in ill})
        ill = [_explained(one, warnings) for one in ill]
        own = [one for one in ill if one.product or one.kind == "Node"]
        return ClusterSweep(
            range=range_text(window),
            ill=own[:MOST_ROWS],
            warnings=warnings[:MOST_ROWS],
            pods={name: f"{well} of {of} well" for name, (well, of) in reading.counted.items()},
            nodes=f"{well_nodes} of {well_nodes + len(nodes)} ready",
            others_ill=len(ill) - len(own),
            requests=reading.requests,
            truncated=len(own) > MOST_ROWS or len(warnings) > MOST_ROWS or reading.more,
        )

    def summarise(self, output: ClusterSweep, arguments: SweepInput) -> str:
        """`2 objects ill, 3 warnings`."""
        del arguments
        ill, warned = len(output.ill), len(output.warnings)
        return f"{ill or 'nothing'} ill, {warned or 'no'} warning{'' if warned == 1 else 's'}"


class _Reading:
    """One look at the cluster, counting its requests."""

    def __init__(self, cluster: Kubernetes, products: Sequence[str]) -> None:
        self._cluster = cluster
        self._products = products
        self._namespace = EVERYWHERE
        self._described = 0
        self.requests = 0
        self.more = False
        self.counted: dict[str, tuple[int, int]] = {}

    async def pods(self) -> list[IllObject]:
        """Those that do not do their work, the first few with their own words."""
        ill: list[tuple[ObjectQuery, str, str]] = []
        for namespace, row in await self._rows("pods"):
            name, status = row.get("Name", ""), row.get("Status", "")
            product, is_ill = (
                owner_of(name, self._products),
                pod_is_ill(row.get("Ready", ""), status),
            )
            well, of = self.counted.get(product, (0, 0))
            if product:
                self.counted[product] = well + (not is_ill), of + 1
            if is_ill:
                ill.append((ObjectQuery("pods", namespace, name), product, status))
        words = {query: await self._words(query) for query in self._worth_describing(ill)}
        return [
            IllObject(
                kind="Pod",
                name=clean_text(query.name),
                product=product,
                state=clean_text(status),
                mechanism=mechanism_of(words.get(query, ""), status) or "not ready",
                detail=clean_text(words.get(query, ""))[:MOST_CHARS],
            )
            for query, product, status in ill
        ]

    def _worth_describing(self, ill: Sequence[tuple[ObjectQuery, str, str]]) -> list[ObjectQuery]:
        """Who crashed, then whose state says no reason, one of each product, in the products' order."""
        first: dict[str, tuple[ObjectQuery, str]] = {}
        for query, product, status in ill:
            if product:
                first.setdefault(product, (query, status))
        order = {product: place for place, product in enumerate(self._products)}
        ordered = sorted(first, key=lambda one: (how_telling(first[one][1]), order[one]))
        return [first[product][0] for product in ordered[:MOST_DESCRIBED]]

    async def workloads(self) -> list[IllObject]:
        """Deployments with fewer ready than wanted."""
        return [
            IllObject(
                kind="Deployment",
                name=clean_text(row.get("Name", "")),
                product=owner_of(row.get("Name", ""), self._products),
                state=f"{clean_text(row.get('Ready', ''))} ready",
                mechanism="fewer ready than wanted",
            )
            for _, row in await self._rows("deployments")
            if workload_is_short(row.get("Ready", ""))
        ]

    async def nodes(self) -> tuple[list[IllObject], int]:
        """Those that are not ready, with their conditions; and how many are."""
        ill, well = [], 0
        for _, row in await self._rows("nodes"):
            name = row.get("Name", "")
            if not node_is_ill(row.get("Status", "")):
                well += 1
                continue
            detail = await self._words(ObjectQuery("nodes", "", name))
            ill.append(
                IllObject(
                    kind="Node",
                    name=clean_text(name),
                    product=owner_of(name, self._products),
                    state=clean_text(row.get("Status", "")),
                    mechanism="node not ready",
                    detail=clean_text(detail)[:MOST_CHARS],
                )
            )
        return ill, well

    async def warnings(self, since: datetime, ill: set[str]) -> list[WarningSeen]:
        """Of the products, and of nodes; newest first."""
        self.requests += 1
        try:
            events = await self._cluster.events(ObjectQuery("", self._namespace))
        except InvalidArguments:
            events = await self._cluster.events(ObjectQuery("", ""))
        told = []
        for event in events:
            if event.type == "Normal" or (event.at is not None and event.at < since):
                continue
            product = owner_of(event.name, self._products) or next(
                iter(named_in(event.message, self._products)), ""
            )
            if product or event.kind == "Node":
                told.append(_warning(event, product, over=not _is_ill(event, product, ill)))
        return told

    async def _rows(self, kind: str) -> list[tuple[str, dict[str, str]]]:
        self.requests += 1
        try:
            table = await self._cluster.table(ObjectQuery(kind, self._namespace))
        except InvalidArguments:  # only some namespaces may be read: the usual one
            self._namespace = ""
            table = await self._cluster.table(ObjectQuery(kind, ""))
        self.more = self.more or table.more
        rows = [dict(zip(table.columns, row, strict=False)) for row in table.rows]
        return [(row.get("Namespace", ""), row) for row in rows]

    async def _words(self, query: ObjectQuery) -> str:
        """Why it is ill, of the first few: each costs a request."""
        if self._described == MOST_DESCRIBED:
            return ""
        self._described += 1
        self.requests += 1
        try:
            return why_ill(await self._cluster.describe(query))
        except InvalidArguments:
            return ""  # gone since


def _explained(one: IllObject, warnings: Sequence[WarningSeen]) -> IllObject:
    """With what the newest warning about it says, where it was not described itself."""
    own = (w for w in warnings if w.object == f"{one.kind}/{one.name}")
    newest = None if one.detail else next(own, None)
    if newest is None:
        return one
    return one.model_copy(update={"detail": f"{newest.reason}: {newest.message}"[:MOST_CHARS]})


def _is_ill(event: ClusterEvent, product: str, ill: set[str]) -> bool:
    """Whether what it is about is ill; a workload is when a pod of its name is."""
    return any(
        name == event.name or name.startswith(f"{event.name}-") or event.name == product == name
        for name in ill
    )


def _warning(event: ClusterEvent, product: str, *, over: bool) -> WarningSeen:
    return WarningSeen(
        ts=instant_text(event.at) if event.at else None,
        object=clean_text(f"{event.kind}/{event.name}"),
        product=product,
        reason=clean_text(event.reason),
        message=clean_text(event.message)[:MOST_CHARS],
        mechanism=mechanism_of(event.reason, event.message),
        count=event.count,
        over=over,
    )
