"""Points and sentences of Kubernetes findings.

An object that is down explains failures of its callers; a container that crashes may be a
consequence.
"""

import re
from typing import Final

from adapters.llm.triage.cluster_facts import IllFact

_DOWN: Final = 60.0
_NODE: Final = 90.0  # more than the pods on it together
_CRASH: Final = 45.0  # its cause may be a product that it calls
_DEGRADED: Final = 26.0
_UNSURE: Final = 11.0  # alone it names no suspect and forbids an all-clear
_WARNED: Final = 12.0
_CONSEQUENCES: Final = frozenset(
    {"container crashes", "container is not created", "not ready", "readiness probe fails"}
)
_MOST_CHARS: Final = 620
# Words, figures and the signs of messages. No markup, no mention, no citation, no link.
_NOT_PLAIN: Final = re.compile(r"[^\w\s.,;%()'/=:+-]|_|://|:(?=[\w+'-]*[a-z][\w+'-]*:)")


def cluster_weight(fact: IllFact) -> float:
    if fact.warned:
        return 0.0 if fact.over else _WARNED
    if fact.impact == "unsure":
        return _UNSURE
    if fact.impact == "degraded":
        return _DEGRADED
    if fact.kind in {"Node", "Scheduler"}:
        return _NODE
    return _CRASH if fact.mechanism in _CONSEQUENCES else _DOWN


def ill_text(fact: IllFact) -> str:
    """The finding's own sentence, in full: the reason is often at its end."""
    if fact.warned or not fact.detail:
        detail = f": {in_full(fact.detail)}" if fact.detail else ""
        warns = "Kubernetes warns of " if fact.warned else ""
        return f"{warns}{fact.kind.lower()} {in_full(fact.name)}, {in_full(fact.state)}{detail}"
    if fact.named_by:
        who = f"{in_full(fact.name)} {in_full(fact.state)}: {in_full(fact.mechanism)}"
        return f"{who} [{fact.named_by}]; {in_full(fact.detail)}"
    return in_full(fact.detail)


def in_full(text: str) -> str:
    """One line of plain words; a very long one loses its middle."""
    words = " ".join(_NOT_PLAIN.sub(" ", text.replace('"', "'")).split())
    if len(words) <= _MOST_CHARS:
        return words
    return f"{words[: _MOST_CHARS // 2]} ... {words[-_MOST_CHARS // 2 :]}"
