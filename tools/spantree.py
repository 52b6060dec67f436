"""A trace's spans as trees: what real traces get wrong is shown, never dropped and never rewritten.

Duplicates, missing parents, several roots, cycles, one id for both sides of a call, chains
thousands deep. `fold` reduces a trace to what can be read: the critical path, the errors, then the
slowest spans; folded ones are counted in their place.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tools.capabilities import Span


@dataclass(slots=True)
class SpanNode:
    """A span in its place. `key` is its id, made unique; `note` describes an oddity."""

    key: str
    span: Span
    parent: str | None = None
    children: list[str] = field(default_factory=list)
    note: str = ""
    synthetic: bool = False

    @property
    def start_us(self) -> int:
        return self.span.start_us

    @property
    def end_us(self) -> int:
        return self.span.start_us + max(0, self.span.duration_us)


@dataclass(frozen=True, slots=True)
class SpanForest:
    """Every span by key. `roots` by start: more than one when parents are missing."""

    nodes: dict[str, SpanNode]
    roots: Sequence[str]

    @property
    def start_us(self) -> int:
        return min((node.start_us for node in self.nodes.values()), default=0)

    @property
    def duration_us(self) -> int:
        """From the first start to the last end."""
        last = max((node.end_us for node in self.nodes.values()), default=0)
        return last - self.start_us

    @property
    def primary(self) -> str | None:
        """The root that represents the trace: a real one before a missing one, then the longest."""

        def rank(key: str) -> tuple[bool, int]:
            node = self.nodes[key]
            return not node.synthetic, node.span.duration_us

        return max(self.roots, key=rank, default=None)

    def preorder(self) -> Iterator[SpanNode]:
        waiting = list(reversed(self.roots))
        while waiting:
            node = self.nodes[waiting.pop()]
            yield node
            waiting.extend(reversed(node.children))


def assemble(spans: Iterable[Span]) -> SpanForest:
    nodes, innermost = _placed(spans)
    _adopt(nodes, innermost)
    _note_skew(nodes)
    for node in nodes.values():
        if node.parent is not None:
            nodes[node.parent].children.append(node.key)
    for node in nodes.values():
        node.children.sort(key=lambda key: _order(nodes[key]))
    _cut_cycles(nodes)
    roots = [node for node in nodes.values() if node.parent is None]
    return SpanForest(nodes, [node.key for node in sorted(roots, key=_order)])


def self_time_us(node: SpanNode, forest: SpanForest) -> int:
    """The span's duration less the union of its children, clipped to it."""
    covered, reached = 0, node.start_us
    for key in sorted(node.children, key=lambda key: forest.nodes[key].start_us):
        child = forest.nodes[key]
        begin, end = max(child.start_us, reached), min(child.end_us, node.end_us)
        if end > begin:
            covered += end - begin
            reached = end
    return node.end_us - node.start_us - covered


def critical_path(forest: SpanForest) -> list[str]:
    """The spans that decided how long the primary root took, walking back from its end."""
    if forest.primary is None:
        return []
    path: list[str] = []
    waiting = [(forest.primary, forest.nodes[forest.primary].end_us)]
    while waiting:
        key, until_us = waiting.pop()
        path.append(key)
        node = forest.nodes[key]
        reached = min(until_us, node.end_us)
        for child_key in sorted(node.children, key=lambda k: -forest.nodes[k].end_us):
            child = forest.nodes[child_key]
            slack_us = _skew_us(node) if reached == node.end_us else 0
            if child.start_us < reached and child.end_us <= reached + slack_us:
                waiting.append((child_key, min(child.end_us, reached)))
                reached = child.start_us
    return path


def _skew_us(node: SpanNode) -> int:
    """How far past its parent a child may end and still be waited for: two hosts' clocks differ.

    One that ends much later was not waited for, as is normal for asynchronous work.
    """
    return max(1000, (node.end_us - node.start_us) // 100)


def _order(node: SpanNode) -> tuple[int, str]:
    return node.start_us, node.key


def _placed(spans: Iterable[Span]) -> tuple[dict[str, SpanNode], dict[str, str]]:
    """Nodes without duplicates, and per span id the key that its children attach to.

    In Zipkin's style both sides of a call share one id: the server's side becomes the child.
    """
    sides: dict[str, dict[str, Span]] = {}
    for index, span in enumerate(spans):
        by_service = sides.setdefault(span.span_id or f"?{index}", {})
        before = by_service.get(span.service)
        if before is None or _richness(span) > _richness(before):
            by_service[span.service] = span
    nodes: dict[str, SpanNode] = {}
    innermost: dict[str, str] = {}
    for span_id, by_service in sides.items():
        outer: str | None = None
        for side in sorted(by_service.values(), key=lambda s: (-s.duration_us, s.start_us)):
            key = span_id if outer is None else f"{span_id}@{side.service}"
            nodes[key] = SpanNode(key, side, outer)
            outer = innermost[span_id] = key
    return nodes, innermost


def _richness(span: Span) -> tuple[bool, int]:
    return span.status != "unset", len(span.tags)


def _adopt(nodes: dict[str, SpanNode], innermost: dict[str, str]) -> None:
    """Give every span its parent; a parent that is not there becomes a visible root."""
    orphans: dict[str, list[SpanNode]] = {}
    for node in nodes.values():
        parent_id = node.span.parent_id
        if node.parent is not None or not parent_id:
            continue
        if parent_id == node.span.span_id:
            node.note = "is its own parent: cut"
        elif parent_id in innermost:
            node.parent = innermost[parent_id]
        else:
            orphans.setdefault(parent_id, []).append(node)
    for parent_id, children in orphans.items():
        start_us = min(child.start_us for child in children)
        end_us = max(child.end_us for child in children)
        span = Span(parent_id, "", "", f"missing parent {parent_id}", start_us, end_us - start_us)
        nodes[parent_id] = SpanNode(parent_id, span, note="not in the trace", synthetic=True)
        for child in children:
            child.parent = parent_id


def _note_skew(nodes: dict[str, SpanNode]) -> None:
    """A child cannot start before its parent; its times are shown as they are."""
    for node in nodes.values():
        if node.parent is None:
            continue
        early_us = nodes[node.parent].start_us - node.start_us
        if early_us > 0:
            node.note = f"-{early_us / 1000:g} ms (clock skew?)"


def _cut_cycles(nodes: dict[str, SpanNode]) -> None:
    """Spans that no root leads to are in a cycle, or below one: cut it at its earliest span."""
    reached: set[str] = set()
    _reach([node.key for node in nodes.values() if node.parent is None], nodes, reached)
    for node in sorted(nodes.values(), key=_order):
        if node.key in reached:
            continue
        if node.parent is not None:
            nodes[node.parent].children.remove(node.key)
        node.parent, node.note = None, "its parents form a cycle: cut"
        _reach([node.key], nodes, reached)


def _reach(begin: list[str], nodes: dict[str, SpanNode], reached: set[str]) -> None:
    waiting = list(begin)
    while waiting:
        key = waiting.pop()
        if key not in reached:
            reached.add(key)
            waiting.extend(nodes[key].children)


MAX_SPANS = 200
MAX_LEVELS = 24  # deeper spans hang below their ancestor at this level: JSON readers give up


@dataclass(slots=True)
class KeptSpan:
    """A span that is shown. `folded` counts the spans left out below it; `level` is the true one."""

    node: SpanNode
    self_us: int
    critical: bool
    level: int
    folded: int = 0
    children: list["KeptSpan"] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FoldedForest:
    """`folded` is how many spans are left out in all."""

    roots: list[KeptSpan]
    folded: int


def fold(forest: SpanForest, max_spans: int = MAX_SPANS) -> FoldedForest:
    """At most `max_spans` spans, each below its nearest ancestor that is kept."""
    critical = critical_path(forest)
    self_us = {node.key: self_time_us(node, forest) for node in forest.nodes.values()}
    chosen = _chosen(forest, critical, self_us, max_spans)
    on_path = set(critical)
    roots: list[KeptSpan] = []
    nearest: dict[str, KeptSpan | None] = {}
    host: dict[str, KeptSpan] = {}
    shown_level: dict[str, int] = {}
    level: dict[str, int] = {}
    for node in forest.preorder():
        above = nearest[node.parent] if node.parent is not None else None
        level[node.key] = 0 if node.parent is None else level[node.parent] + 1
        if node.key not in chosen:
            nearest[node.key] = above
            if above is not None:
                above.folded += 1
            continue
        kept = KeptSpan(node, self_us[node.key], node.key in on_path, level[node.key])
        nearest[node.key] = kept
        _hang(kept, above, roots, host, shown_level)
    return FoldedForest(roots, len(forest.nodes) - len(chosen))


def _hang(
    kept: KeptSpan,
    above: KeptSpan | None,
    roots: list[KeptSpan],
    host: dict[str, KeptSpan],
    shown_level: dict[str, int],
) -> None:
    key = kept.node.key
    if above is None:
        shown_level[key] = 0
        roots.append(kept)
        return
    if shown_level[above.node.key] + 1 >= MAX_LEVELS:
        above = host[above.node.key]
    host[key] = above
    shown_level[key] = shown_level[above.node.key] + 1
    above.children.append(kept)


def _chosen(
    forest: SpanForest, critical: Iterable[str], self_us: dict[str, int], max_spans: int
) -> set[str]:
    nodes = sorted(forest.nodes.values(), key=lambda node: (node.start_us, node.key))
    errors = [node.key for node in nodes if node.span.status == "error"]
    missing = [node.key for node in nodes if node.synthetic]
    slowest = sorted(forest.nodes, key=lambda key: (-self_us[key], key))
    primary = [] if forest.primary is None else [forest.primary]
    chosen: dict[str, None] = {}
    for key in (*primary, *critical, *errors, *missing, *slowest):
        if len(chosen) >= max_spans:
            break
        chosen[key] = None
    return set(chosen)
