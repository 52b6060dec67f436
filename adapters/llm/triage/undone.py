"""A deploy that was rolled back: what it did is over, so what came since is looked at by itself."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from pydantic import JsonValue

from adapters.llm.triage.case import Case
from adapters.llm.triage.deploy_facts import DeployFact, deploys
from adapters.llm.triage.evidence import LOGS, METRICS, TRACES, Facts

SWEPT_AGAIN: Final = (METRICS, LOGS, TRACES)
_SETTLES: Final = timedelta(minutes=1)  # requests under way end, queues run empty
TELLS_AFTER: Final = timedelta(minutes=3)  # two samples a minute apart
_COMPLAINTS: Final = frozenset({"warn", "error", "fatal"})
_HELD_FOR: Final = timedelta(hours=2)  # a rollback longer ago is history


@dataclass(frozen=True, slots=True)
class Undone:
    """`gone` was replaced by `back`, the version that ran before it."""

    gone: DeployFact
    back: DeployFact

    @property
    def window(self) -> str:
        """The time since, as a tool takes it: from an instant until now."""
        return f"{self.back.at + _SETTLES:%Y-%m-%dT%H:%M:%SZ}"

    @property
    def words(self) -> str:
        """`v2.4.0 was rolled back to v2.3.7 at 14:36 UTC`."""
        return (
            f"{self.gone.version} was rolled back to {self.back.version} "
            f"at {self.back.at:%H:%M} UTC"
        )

    def words_to(self, subject: str) -> str:
        """With the product, unless the question is about that one."""
        return self.words if self.gone.product == subject else f"{self.gone.product} {self.words}"


def undone(case: Case) -> Undone | None:
    """The last rollback of the last hours, None where there was none."""
    found = deploys(case)
    for number, back in enumerate(found):
        if case.now is None or case.now - back.at > _HELD_FOR:
            return None
        gone = next((one for one in found[number + 1 :] if one.product == back.product), None)
        if gone is not None and gone.previous and gone.previous == back.version:
            return Undone(gone, back)
    return None


def can_tell(case: Case, over: Undone) -> bool:
    """Whether enough time has gone by to see what it changed."""
    return case.now is not None and case.now - over.back.at >= TELLS_AFTER


def looked_since(case: Case, over: Undone) -> bool:
    return any(_is_since(seen.arguments, over) and seen.ok for seen in case.seen)


def before(case: Case, over: Undone) -> Case:
    """The case without the looks at the time since."""
    return replace(case, seen=tuple(one for one in case.seen if not _is_since(one.arguments, over)))


def settled(facts: Facts, over: Undone) -> Facts:
    """The facts without log changes that the removed release, or reactions to it, explain."""
    logs = [
        one
        for one in facts.logs
        if one.change != "gone"
        or (one.product != over.gone.product and one.level not in _COMPLAINTS)
    ]
    return replace(facts, logs=logs)


def _is_since(arguments: Mapping[str, JsonValue], over: Undone) -> bool:
    return arguments.get("time_range") == over.window
