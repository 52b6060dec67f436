"""Reduce a trace to a readable size: the critical path, the errors, then the slowest spans.

Folded spans are counted in their place.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tools.spantree import SpanForest, SpanNode, critical_path, self_time_us

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
