"""One thing that is wrong with one object of a cluster."""

from dataclasses import dataclass
from enum import StrEnum


class Impact(StrEnum):
    """The effect on requests.

    `DOWN`: the object does not work. `DEGRADED`: it works in part. `UNSURE`: it may be intended, or
    the reason is elsewhere. `RISK`: no effect yet.
    """

    DOWN = "down"
    DEGRADED = "degraded"
    UNSURE = "unsure"
    RISK = "risk"


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of an object: `state` as in kubectl, `mechanism` the kind of cause, `reason` one full
    sentence.

    `workload` is its Deployment, StatefulSet or the like, `product` the channel's name for it.
    `crashed` is the container whose log says more.
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
