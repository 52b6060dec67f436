"""The call graph, and its use for causes: a symptom's reach, and the deepest product."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

_Edge = tuple[str, str]
# What stands before the name of a server in an error of its client: `dial tcp: lookup stock`, `http://stock`.
_CALLS = (
    r"(?://|@|(?<!response )(?<!reply )(?<!due )(?<!from )\b(?:to|lookup|call(?:ing|ed)?|reach(?:ing)?"
    r"|dial(?:ing)?|connect(?:ing)?|upstream|backend|host|server|GET|POST|PUT)\b\W{0,3})"
)


def called_in(error: str, names: Iterable[str]) -> Iterator[str]:
    """Which of these products the line says are called: after `to` or `//`, or with a port."""
    for name in names:
        own = re.escape(name)
        called = rf"(?i){_CALLS}{own}(?![\w-])|(?<![\w-])(?<!from ){own}:\d{{2,5}}\b"
        if re.search(called, error):
            yield name


def edges_in(errors: Iterable[tuple[str, str, Iterable[str]]]) -> Iterator[_Edge]:
    """The calls that failed: of each error its product, its text, and the products that it names."""
    return ((product, to) for product, text, names in errors for to in called_in(text, names))


class CallGraph:
    """Edges from caller to called. Calls to oneself are left out.

    `likely` edges are some of many: they show who explains a trouble, not who is out of its reach.
    """

    def __init__(self, edges: Iterable[_Edge], likely: Iterable[_Edge] = ()) -> None:
        self._called = _by_caller(edges)
        self._next = _by_caller(
            [
                *((caller, callee) for caller, of in self._called.items() for callee in of),
                *(each for each in likely if each[0] not in self._called.get(each[1], ())),
            ]
        )

    def __bool__(self) -> bool:
        return bool(self._called)

    def called_by(self, product: str) -> Collection[str]:
        return self._called.get(product, set())

    def knows(self, product: str) -> bool:
        return product in self._called or any(product in to for to in self._called.values())

    def reach(self, product: str) -> frozenset[str]:
        seen, waiting = {product}, [product]
        while waiting:
            for callee in self._next.get(waiting.pop(), ()):
                if callee not in seen:
                    seen.add(callee)
                    waiting.append(callee)
        return frozenset(seen)

    def passes_on(self, product: str, weights: Mapping[str, float], share: float) -> str:
        """The called product that explains its trouble: at least this share of its own weight.

        The heaviest of them, empty without one. A product that calls back does not count.
        """
        own = weights.get(product, 0.0)
        found = [
            callee
            for callee in self._next.get(product, ())
            if weights.get(callee, 0.0) >= share * own > 0
            and not (product in self._next.get(callee, ()) and weights[callee] <= own)
        ]
        return max(found, key=lambda callee: (weights[callee], callee), default="")


def _by_caller(edges: Iterable[_Edge]) -> Mapping[str, set[str]]:
    called: dict[str, set[str]] = {}
    for caller, callee in edges:
        if callee and caller != callee:
            called.setdefault(caller, set()).add(callee)
    return called
