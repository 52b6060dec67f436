"""Fields of a Kubernetes object, read by path. An absent or mistyped value is empty."""

from collections.abc import Mapping
from datetime import UTC, datetime

from pydantic import JsonValue

from tools.cluster_objects import KubernetesObject
from tools.outside_json import set_instant


def mapping_at(value: KubernetesObject, *path: str) -> KubernetesObject:
    found: JsonValue = dict(value)
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def value_at(value: KubernetesObject, *path: str) -> JsonValue:
    """Any value inside it; None when absent."""
    return mapping_at(value, *path[:-1]).get(path[-1])


def rows_at(value: KubernetesObject, *path: str) -> list[KubernetesObject]:
    found = value_at(value, *path)
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def text_at(value: KubernetesObject, *path: str) -> str:
    found = value_at(value, *path)
    return found if isinstance(found, str) else ""


def number_at(value: KubernetesObject, *path: str) -> int | None:
    """A whole number; None for anything else."""
    found = value_at(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def texts_at(value: KubernetesObject, *path: str) -> dict[str, str]:
    """A map of texts, such as labels."""
    return {key: one for key, one in mapping_at(value, *path).items() if isinstance(one, str)}


def instant_at(value: KubernetesObject, *path: str) -> datetime | None:
    """A time with its zone; None for an unset one, such as the year 1."""
    try:
        found = datetime.fromisoformat(text_at(value, *path))
    except ValueError:
        return None
    return set_instant(found if found.tzinfo else found.replace(tzinfo=UTC))


def name_of(value: KubernetesObject) -> str:
    """`metadata.name`."""
    return text_at(value, "metadata", "name")


def namespace_of(value: KubernetesObject) -> str:
    """`metadata.namespace`; empty for a cluster-wide object."""
    return text_at(value, "metadata", "namespace")


def labels_of(value: KubernetesObject) -> dict[str, str]:
    return texts_at(value, "metadata", "labels")


def is_selected(labels: Mapping[str, str], selector: Mapping[str, str]) -> bool:
    """Whether a selector of equal labels selects these; an empty one selects nothing."""
    return bool(selector) and selector.items() <= labels.items()


def condition(value: KubernetesObject, kind: str) -> KubernetesObject:
    """The condition of that type; empty when the object has none."""
    found = rows_at(value, "status", "conditions")
    return next((row for row in found if row.get("type") == kind), {})
