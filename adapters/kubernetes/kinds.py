"""The readable kinds, by all their usual names, and their API paths.

Kubernetes' own kinds are listed here; further ones come from the cluster's discovery. Neither
contains Secrets: a kind with a name that suggests secrets cannot be read.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tools.cluster_offer import OfferedKind
from tools.errors import InvalidArguments

# RFC 1123, as the API server checks names; a name that fits cannot leave its place in a path.
EVERYWHERE: Final = "*"
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SECRET: Final = re.compile(r"(?i)secret|token|credential|password|privatekey")
_SELECTOR: Final = re.compile(r"[A-Za-z0-9._/=!,() -]{1,500}")


@dataclass(frozen=True, slots=True)
class Kind:
    """`group` is its part of the path: `api/v1` or `apis/apps/v1`."""

    name: str
    plural: str
    group: str
    short: tuple[str, ...] = ()
    namespaced: bool = True

    @property
    def api_group(self) -> str:
        """Its group as RBAC names it: empty for the core group."""
        return self.group.removeprefix("apis/").partition("/")[0] if "apis/" in self.group else ""

    def path(self, namespace: str = "", name: str = "") -> str:
        """Of one object, of those of a namespace, or of all. Raises InvalidArguments."""
        parts = [self.group]
        if namespace and namespace != EVERYWHERE and self.namespaced:
            parts += ["namespaces", checked_namespace(namespace)]
        parts.append(self.plural)
        if name:
            parts.append(checked_name(name))
        return "/" + "/".join(parts)


KINDS: Final = (
    Kind("Pod", "pods", "api/v1", ("po",)),
    Kind("Service", "services", "api/v1", ("svc",)),
    Kind("Endpoints", "endpoints", "api/v1", ("ep",)),
    Kind("ConfigMap", "configmaps", "api/v1", ("cm",)),
    Kind("PersistentVolumeClaim", "persistentvolumeclaims", "api/v1", ("pvc",)),
    Kind("ResourceQuota", "resourcequotas", "api/v1", ("quota",)),
    Kind("Node", "nodes", "api/v1", ("no",), namespaced=False),
    Kind("Namespace", "namespaces", "api/v1", ("ns",), namespaced=False),
    Kind("PersistentVolume", "persistentvolumes", "api/v1", ("pv",), namespaced=False),
    Kind("StorageClass", "storageclasses", "apis/storage.k8s.io/v1", ("sc",), namespaced=False),
    Kind("Deployment", "deployments", "apis/apps/v1", ("deploy",)),
    Kind("ReplicaSet", "replicasets", "apis/apps/v1", ("rs",)),
    Kind("StatefulSet", "statefulsets", "apis/apps/v1", ("sts",)),
    Kind("DaemonSet", "daemonsets", "apis/apps/v1", ("ds",)),
    Kind("Job", "jobs", "apis/batch/v1"),
    Kind("CronJob", "cronjobs", "apis/batch/v1", ("cj",)),
    Kind("Ingress", "ingresses", "apis/networking.k8s.io/v1", ("ing",)),
    Kind("NetworkPolicy", "networkpolicies", "apis/networking.k8s.io/v1", ("netpol",)),
    Kind("HorizontalPodAutoscaler", "horizontalpodautoscalers", "apis/autoscaling/v2", ("hpa",)),
    Kind("PodDisruptionBudget", "poddisruptionbudgets", "apis/policy/v1", ("pdb",)),
)
_BY_NAME: Final = {
    name: kind for kind in KINDS for name in (kind.name.lower(), kind.plural, *kind.short)
}


def known_kind(text: str) -> Kind | None:
    return _BY_NAME.get(text.strip().lower())


def is_secret(text: str) -> bool:
    """Whether a kind's name says that its objects hold secrets: Secret, SealedSecret, TokenReview."""
    return _SECRET.search(text) is not None


def kind_of(text: str, offered: Sequence[OfferedKind] = ()) -> Kind:
    """By kind, plural, short name, or `plural.group`. Raises InvalidArguments, listing what there is.

    Of two kinds of one name the listed ones come first, then the cluster's own order.
    """
    kind = known_kind(text)
    if kind is not None:
        return kind
    if is_secret(text):
        raise InvalidArguments("kind: secrets are never shown")
    asked = text.strip().lower()
    for one in offered:
        if asked in _names(one) and not any(map(is_secret, (one.kind, one.plural))):
            return _from_discovery(one)
    more = "; kinds of your operators are in search_capabilities" if offered else ""
    raise InvalidArguments(
        f"kind: not readable here; kinds are {', '.join(k.plural for k in KINDS)}{more}"
    )


def _names(one: OfferedKind) -> set[str]:
    group = one.api_version.rpartition("/")[0]
    plain = {one.kind.lower(), one.plural, *one.short_names}
    return plain | {f"{one.plural}.{group}"} if group else plain


def _from_discovery(one: OfferedKind) -> Kind:
    """Raises InvalidArguments for names that would leave their place in a path."""
    for part in (one.plural, *one.api_version.split("/")):
        if _NAME.fullmatch(part) is None:
            raise InvalidArguments("kind: the cluster offers it under an invalid name")
    group = f"apis/{one.api_version}" if "/" in one.api_version else f"api/{one.api_version}"
    return Kind(one.kind, one.plural, group, tuple(one.short_names), one.namespaced)


def checked_name(text: str) -> str:
    """The name. Raises InvalidArguments unless it is RFC 1123's."""
    if _NAME.fullmatch(text) is None or ".." in text:
        raise InvalidArguments("name: lower-case letters, digits, '-' and '.', at most 253")
    return text


def checked_namespace(text: str) -> str:
    """The namespace. Raises InvalidArguments unless it is an RFC 1123 label."""
    if _NAMESPACE.fullmatch(text) is None:
        raise InvalidArguments("namespace: lower-case letters, digits and '-', at most 63")
    return text


def checked_selector(text: str) -> str:
    """The label selector. Raises InvalidArguments for what cannot be one."""
    if text and _SELECTOR.fullmatch(text) is None:
        raise InvalidArguments("selector: labels such as app=checkout,tier!=cache")
    return text
