"""An asker's hypothesis ("is it the database?"), compared with the judgement."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from adapters.llm.triage.case import Case, plain
from adapters.llm.triage.cluster_facts import IllFact
from adapters.llm.triage.deploy_facts import DEPLOYS
from adapters.llm.triage.evidence import Moved
from adapters.llm.triage.judgement import Judgement
from adapters.llm.triage.telling import told
from adapters.llm.triage.weigh import Point, Suspicion
from tools.core.get_recent_deploys import NO_SOURCE

# What people call a part of a system: how such products are called, and which evidence is of it.
_PARTS: Final[Mapping[str, tuple[str, str]]] = {
    r"database|db|postgres\w*|mysql|sql|mongo\w*": (r"db|database|postgres|mysql|maria|sql|mongo|rds|aurora|oracle", r"pool"),
    r"cache|redis|memcached?": (r"cache|redis|memcache|valkey", r"-"),
    r"queue|kafka|rabbit\w*|broker": (r"queue|kafka|rabbit|broker|nats|sqs|pulsar", r"queue"),
    r"deploy\w*|release|rollout|version|update": (r"-", r"deploy(?!ment)|rollout"),
    r"memory|oom\w*|ram": (r"-", r"memory|out of memory|oom"),
    r"cpu|load|traffic": (r"-", r"cpu|traffic"),
    r"disks?|storage|volume": (r"disk|storage|volume", r"disk|volume"),
    r"image|tag|registry": (r"registry", r"image"),
    r"quota": (r"-", r"exceeded quota|quota"),
    r"probes?|health ?checks?": (r"-", r"(?:liveness |readiness |startup )?probe"),
    r"nodes?|cluster|kubernetes|k8s|pods?": (r"-", r"node|pod|container|image|scheduled|probe|quota"),
    r"network|dns": (r"dns|network|proxy|ingress", r"way to others|network"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _HypothesisTarget:
    products: Sequence[str]
    kinds: str

    def fits(self, one: Suspicion, point: Point) -> bool:
        if one.product in self.products:
            return True
        fact = point.fact
        more = f" {fact.role}" if isinstance(fact, Moved) else ""
        more += f" {fact.mechanism} {fact.kind}" if isinstance(fact, IllFact) else ""
        return bool(re.search(rf"\b(?:{self.kinds})", f"{point.kind}{more}".lower()))


def answer_to(case: Case, judgement: Judgement) -> str:
    """One sentence or two; empty when nothing was thought. Never surer than the judgement."""
    thought = case.asked.thought
    if not thought:
        return ""
    meant = _meant(thought, case.products)
    if meant is None:
        return f'I cannot check "{plain(thought)}": I have no data with that name.'
    if guesses_deploy(case) and (unread := _no_deploys(case)):
        return unread
    found = [
        (one, point)
        for one in (*judgement.suspects, *judgement.others)
        for point in one.ordered
        if meant.fits(one, point)
    ]
    if not found:
        others = [plain(one) for one in meant.products[:3] if one != thought]
        looked = f" ({', '.join(others)})" if others else ""
        if judgement.missing:
            return f"I see no sign that it is {plain(thought)}{looked}, but I could not check everything."
        return f"I see no sign that it is {plain(thought)}{looked}."
    one, point = found[0]
    is_top = judgement.verdict == "cause" and one is judgement.suspects[0]
    if is_top:
        return f'"{plain(thought)}" looks likely: {told(point, case.now)}.'
    return (
        f'"{plain(thought)}" may play a part: {told(point, case.now)}. It is not the main suspect.'
    )


def guesses_deploy(case: Case) -> bool:
    meant = _meant(case.asked.thought, case.products)
    return meant is not None and meant.kinds.startswith("deploy")


def _no_deploys(case: Case) -> str:
    """That no deploys are known here; empty if a source reports some."""
    seen = case.of(DEPLOYS)
    if seen is None:
        return "I cannot say whether it was a deploy: deploys could not be read."
    if NO_SOURCE in seen.texts("notes"):
        return f"I cannot say whether it was a deploy: no deploy source is connected [{seen.mark}]."
    return ""


def _meant(thought: str, products: Sequence[str]) -> _HypothesisTarget | None:
    if thought in products:
        return _HypothesisTarget((thought,), "(?!)")
    for words, (names, kinds) in _PARTS.items():
        if re.search(rf"\b(?:{words})s?\b", thought.lower()):
            called = [p for p in products if re.search(rf"(?:^|[-_.])(?:{names})\d*(?:$|[-_.])", p)]
            return _HypothesisTarget(called, kinds) if called or kinds != "-" else None
    return None
