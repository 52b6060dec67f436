"""The label that names the products, if none is configured.

Every shop may call it differently (`svc`, `app_name`, `k8s.deployment.name`). The usual labels come
first. Among the rest it is the label whose values look like names and that most metrics have.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from adapters.observe.product_places import LabelAsked, ProductLabels, underscored
from tools.product_names import NO_WORKLOAD, WORKLOAD_LABELS

MOST_LABELS_TRIED: Final = 12  # two cheap requests each

# Words in a label's name that mean a service.
_SERVICE_WORD: Final = re.compile(
    "svc|service|srv|app|application|component|module|deployment|deploy|workload|microservice|"
    "subsystem|system|program"
)
# Labels for the place, owner or subject of a measurement.
_PLACE_WORD: Final = re.compile(
    "inst|instance|host|hostname|machine|vm|server|replica|shard|partition|pid|ip|addr|port|az|dc|"
    "datacenter|rack|site|country|cluster|tenant|customer|client|user|account|team|owner|stage|"
    "namespace|ns|type|kind|level|severity|class|op|operation|action|event|topic|queue|pool|table|"
    "db|database|bucket|tag|unit|stat|quantile|pct|percentile|peer|remote|upstream|dst|dest|target|"
    "src|from|to|via|caller|callee|runtime|lang|language|os|arch|branch|commit|build|rev|revision"
)
# Usual labels that hold the name of the scrape, which all services of a cluster may share.
_SCRAPE: Final = frozenset({*NO_WORKLOAD, "job", "exported_job"})
_NAME: Final = re.compile(r"[a-z](?:[\w.:/ -]{0,98}\w)?", re.IGNORECASE)
_NO_NAME: Final = re.compile(
    r"[0-9a-f]{8,}(?:-[0-9a-f]{4,})*|.*:\d+|true|false|none|null", re.IGNORECASE
)
_NAMES_SHARE: Final = 0.8

# As the operator says; usual; by its name; a pod's; of the scrape; of a place.
Kind = Literal["told", "usual", "service", "pods", "unknown", "scrape", "place"]
_RANKS: Final[Mapping[Kind, int]] = {
    "told": 0, "usual": 1, "service": 1, "pods": 2, "unknown": 2, "scrape": 3, "place": 5,
}  # fmt: skip
_LAST: Final = 4
_NO_NAMES: Final = frozenset({"unknown", "place"})
_TRUSTED: Final = frozenset({"told", "usual", "scrape"})  # for any values
_WORD: Final = re.compile("[A-Z]?[a-z0-9]+|[A-Z0-9]+")  # of `app_name`, `svcName`
_FAR_FEWER: Final = 2  # a usual label on less than half as many metrics is of something else


@dataclass(frozen=True, slots=True)
class LabelSeen:
    """A label, the values that it has, and the number of metrics that carry it.

    `is_at_work`: one of these metrics counts or moves; the others state facts (`kube_service_info`).
    """

    label: str
    values: Sequence[str]
    metrics: int
    is_at_work: bool = True


def labels_to_try(asked: Sequence[LabelAsked], told: ProductLabels) -> Sequence[str]:
    """The labels that may name all products, the likely ones first."""
    if told.named:
        return [told.named]
    labels = [one.label for one in asked]
    ranked = sorted(labels, key=lambda label: _RANKS[_kind(label, told, asked)])
    return ranked[:MOST_LABELS_TRIED]


def chosen_label(
    seen: Sequence[LabelSeen], asked: Sequence[LabelAsked], told: ProductLabels
) -> LabelSeen | None:
    """The label whose values are the products; None where no label will do."""
    kinds = {one.label: _kind(one.label, told, asked) for one in seen}
    able = [one for one in seen if one.values and (kinds[one.label] in _TRUSTED or _are_names(one))]
    if any(one.is_at_work and kinds[one.label] not in _NO_NAMES for one in able):
        able = [one for one in able if one.is_at_work or kinds[one.label] == "told"]
    services = [one for one in able if kinds[one.label] in {"usual", "service"}]
    most = max((one.metrics for one in services), default=0)
    for one in able:
        is_usual = kinds[one.label] == "usual" and one.metrics * _FAR_FEWER >= most
        if kinds[one.label] == "told" or is_usual:
            return one
    scraped = max((one.metrics for one in able if kinds[one.label] == "scrape"), default=0)

    def order(one: LabelSeen) -> tuple[int, int, int]:
        kind = kinds[one.label]
        tells = len(one.values) > 1 and one.metrics * _FAR_FEWER >= scraped
        rank = _LAST if kind in {"pods", "unknown"} and not tells else _RANKS[kind]
        return rank, -one.metrics, len(one.values)

    return min(able, key=order, default=None)


def _kind(label: str, told: ProductLabels, asked: Sequence[LabelAsked]) -> Kind:
    plain = underscored(label).casefold()
    if label in (told.named, *told.preferred):
        return "told"
    if plain in _SCRAPE:
        return "scrape"
    if plain in WORKLOAD_LABELS:
        return "usual"
    words = [word.casefold() for word in _WORD.findall(underscored(label))]
    if any(_SERVICE_WORD.fullmatch(word) for word in words):
        return "service"
    if any(one.label == label and one.pods for one in asked):
        return "pods"
    return "place" if any(_PLACE_WORD.fullmatch(word) for word in words) else "unknown"


def _are_names(one: LabelSeen) -> bool:
    named = [
        value for value in one.values if _NAME.fullmatch(value) and not _NO_NAME.fullmatch(value)
    ]
    return len(named) >= _NAMES_SHARE * len(one.values)
