"""A database, cache or queue that the errors of several products blame, though they do not name it.

A server that refuses everybody (no connection left, read-only, disk full) shows in the logs of those
who use it. Their own errors and crashes are consequences.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from adapters.llm.triage.cluster_facts import DatastoreFact, IllFact
from adapters.llm.triage.evidence import Facts, LogFact
from tools.analysis.cluster.datastores import technology_of
from tools.log_templates import without_clock

# What a server says when it refuses all of its clients, and what that means.
_REFUSALS: Final[Sequence[tuple[str, str]]] = (
    (
        r"too many (?:client )?connections|remaining connection slots|too many clients already"
        r"|max(?:imum)? number of clients|max_connections",
        "too many connections",
    ),
    (
        r"--(?:super-)?read-only option|read-only transaction|super-read-only"
        r"|READONLY You can't write|read.only mode|not primary|not (?:the )?master",
        "it is read-only",
    ),
    (r"no space left on device|disk is full|could not extend file|disk usage exceeded|flood stage",
     "its disk is full"),
    (r"OOM command not allowed|memory resource limit alarm", "its memory limit is reached"),
    (r"database system is (?:starting up|shutting down|in recovery)", "it is not up yet"),
)  # fmt: skip
_FEWEST: Final = 2  # products that blame it, itself one of them
_SQL: Final = re.compile(r"SQL|JDBC|jdbc")
_KEPT: Final = 0.3  # of the points of those who only suffer from it


@dataclass(frozen=True, slots=True)
class SharedDependency:
    """`fact` is the finding about the server, `sufferers` are the products that it explains."""

    fact: IllFact
    sufferers: frozenset[str]


def shared_dependency(facts: Facts) -> SharedDependency | None:
    """The server that several products are refused by; None where none or several fit."""
    for pattern, mechanism in _REFUSALS:
        said = list(_saying(facts, re.compile(pattern, re.IGNORECASE)))
        products = {product for product, _, _ in said}
        if len(products) < _FEWEST:
            continue
        server = _server(said, facts, products)
        if server is not None:
            sufferers = frozenset(products - {server.product})
            return SharedDependency(_fact(server, mechanism, said), sufferers)
    return None


def kept(product: str, points: float, fact: object, shared: SharedDependency | None) -> float:
    """The points, lessened where they are of logs or crashes that the server explains."""
    suffers = shared is not None and product in shared.sufferers
    return points * _KEPT if suffers and isinstance(fact, LogFact | IllFact) else points


def _saying(facts: Facts, pattern: re.Pattern[str]) -> Iterator[tuple[str, str, str]]:
    for line in facts.logs:
        if line.change != "gone" and pattern.search(line.example):
            yield line.product, line.example, line.mark
    for ill in facts.ill:
        if not ill.warned and ill.product and pattern.search(ill.detail):
            yield ill.product, ill.detail, ill.mark


def _server(
    said: Sequence[tuple[str, str, str]], facts: Facts, products: set[str]
) -> DatastoreFact | None:
    """The one that says so itself, else the only one that the errors can mean.

    Of several the only one that they call, else the only one that was created within the hour.
    """
    own = [one for one in facts.datastores if one.product in products]
    if len(own) == 1:
        return own[0]
    meant = _technologies(said, facts, products)
    fits = [one for one in facts.datastores if not meant or one.technology in meant]
    called = [
        one for one in fits if any(one.product in facts.graph.reach(user) for user in products)
    ]
    fits = called or fits
    if len(fits) > 1:
        fits = [one for one in fits if one.is_new]
    return fits[0] if len(fits) == 1 else None


def _technologies(
    said: Sequence[tuple[str, str, str]], facts: Facts, products: set[str]
) -> set[str]:
    texts = [text for _, text, _ in said]
    texts += [line.example for line in facts.logs if line.product in products]
    meant = {found for text in texts if (found := technology_of(text))}
    if not meant and any(_SQL.search(text) for text in texts):
        return {"mysql", "postgres"}
    return meant


def _fact(server: DatastoreFact, mechanism: str, said: Sequence[tuple[str, str, str]]) -> IllFact:
    users = sorted({product for product, _, _ in said} - {server.product})
    listed = ", ".join(users[:4]) + (f" and {len(users) - 4} more" if len(users) > 4 else "")
    product, text, mark = said[0]
    return IllFact(
        product=server.product,
        kind="Server",
        name=server.product,
        state="refuses its clients",
        mechanism=mechanism,
        detail=f"the errors of {listed} say so, such as {product}: {without_clock(text)[-300:]}",
        warned=False,
        over=False,
        mark=mark,
        named_by=server.mark,
    )


def with_server(facts: Facts, shared: SharedDependency | None) -> Facts:
    return replace(facts, ill=[shared.fact, *facts.ill]) if shared else facts
