"""One thing that is wrong with one object of a cluster."""

from dataclasses import dataclass
from enum import StrEnum


class Impact(StrEnum):
    """What it means for requests.

    `DOWN`: the object does not do its work. `DEGRADED`: it does part of it. `UNSURE`: it may be
    meant so, or the reason lies elsewhere. `RISK`: nothing suffers yet.
    """

    DOWN = "down"
    DEGRADED = "degraded"
    UNSURE = "unsure"
    RISK = "risk"


@dataclass(frozen=True, slots=True)
class Finding:
    """`state` is what kubectl shows, `mechanism` the kind of cause, `reason` one sentence in full.

    `workload` is the Deployment, StatefulSet or the like that it belongs to, `product` the channel's
    name for it. `crashed` is the container whose log says more.
    """

    kind: str
    namespace: str
    name: str
    product: str
    workload: str
    state: str
    mechanism: str
    reason: str
    impact: Impact = Impact.DOWN
    crashed: str = ""
    objects: int = 1
