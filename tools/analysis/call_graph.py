"""The call graph, and its use for causes: a symptom's reach, and the deepest product."""

from collections.abc import Collection, Iterable, Mapping


class CallGraph:
    """Edges from caller to called. Calls to oneself are left out."""

    def __init__(self, edges: Iterable[tuple[str, str]]) -> None:
        called: dict[str, set[str]] = {}
        for caller, callee in edges:
            if caller != callee:
                called.setdefault(caller, set()).add(callee)
        self._called = called

    def __bool__(self) -> bool:
        return bool(self._called)

    def called_by(self, product: str) -> Collection[str]:
        return self._called.get(product, set())

    def knows(self, product: str) -> bool:
        return product in self._called or any(product in to for to in self._called.values())

    def reach(self, product: str) -> frozenset[str]:
        seen, waiting = {product}, [product]
        while waiting:
            for callee in self._called.get(waiting.pop(), ()):
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
            for callee in self._called.get(product, ())
            if weights.get(callee, 0.0) >= share * own > 0
            and not (product in self._called.get(callee, ()) and weights[callee] <= own)
        ]
        return max(found, key=lambda callee: (weights[callee], callee), default="")
