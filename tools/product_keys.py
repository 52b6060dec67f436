"""The keys under which arguments and queries name a product, as words of any spelling."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from tools.hidden_texts import plain_text
from tools.product_names import ANY_PRODUCT

PRODUCT_KEYS: Final = frozenset(
    {"product", "products", "product_name", "product_id", "service", "services", "service_name",
     "service_id", "svc", "microservice", "app", "apps", "app_name", "app_id", "application",
     "applications", "application_name", "cloud_role_name", "component", "components", "workload"}
)  # fmt: skip
# Each is a product's key as the last word of a longer one, too: `resource.service.name`, `k8s-app`.
NOUNS: Final = frozenset(
    {"product", "products", "productname", "service", "services", "servicename", "svc", "microservice",
     "microservices", "app", "apps", "appname", "application", "applications", "component", "components",
     "workload", "workloads"}
)  # fmt: skip
# What runs a product, and is called like it more often than not. CI has jobs and deployments too: these
# name a product only where they hold a text, and a plain argument `job` is CI's.
DEPLOYMENTS: Final = frozenset({"deployment", "deployments", "deployment_name"})
RUNNERS: Final = DEPLOYMENTS | {"job", "job_name"}
# Keys of an object below a product's key that only hold the value itself: {"service": {"eq": "web"}}.
VALUE_KEYS: Final = frozenset(
    {"value", "values", "label_value", "tag_value", "v", "rhs", "right", "query", "name", "names", "id", "eq", "equals", "in", "is",
     "term", "terms", "any_of"}
)  # fmt: skip
# Keys of one condition: {"field": "service", "op": "=", "value": "web"}.
FIELD_KEYS: Final = frozenset(
    {"field", "default_field", "key", "k", "label", "label_name", "attribute", "column", "property",
     "dimension", "name", "tag", "tag_name", "lhs", "left"}
)  # fmt: skip
EXACT: Final = frozenset({"", "=", "==", ":", "eq", "equals", "equal", "in", "is", "term", "terms"})
INEXACT: Final = frozenset(
    {"!=", "<>", "=~", "!~", "~", "<", ">", "<=", ">=", "ne", "neq", "not", "nin", "like", "ilike", "rlike",
     "regex", "regexp", "match", "matches", "prefix", "suffix", "contains", "icontains", "startswith",
     "endswith", "gt", "gte", "lt", "lte", "wildcard", "between"}
)  # fmt: skip
_SUFFIXES: Final = frozenset(
    {"name", "names", "id", "ids", "keyword", "raw", "exact", "value", "values", "eq", "equals", "in", "is",
     "csv", "list"}
)  # fmt: skip
_NEGATIONS: Final = frozenset(
    {"not", "nor", "none", "except", "without", "exclude", "excludes", "excluded", "excluding"}
)
_SEPARATOR: Final = r"\\?[._-]?"
NAMES: Final = "|".join(
    (
        r"app\.kubernetes\.io/(?:name|instance|component)",
        *sorted(
            (key.replace("_", _SEPARATOR) for key in PRODUCT_KEYS | NOUNS | RUNNERS),
            key=len,
            reverse=True,
        ),
    )
)
ANYTHING: Final = frozenset({"", "*", ".*", ".+", "^.*$", "^.+$"})


def plain_key(name: str) -> str:
    """`service.name`, `Service-Name` and `serviceName` are all `service_name`."""
    letters = "".join(
        each
        for each in unicodedata.normalize("NFKD", plain_text(name))
        if not unicodedata.combining(each)
    )
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", letters)
    return re.sub(r"[^a-z0-9]+", "_", snake.lower()).strip("_")


def is_negation(key: str) -> bool:
    return not _NEGATIONS.isdisjoint(key.split("_"))


def compared(name: object) -> bool | None:
    key = plain_key(name) if isinstance(name, str) else ""
    if key in PRODUCT_KEYS:
        return True
    words = [word for word in key.split("_") if word not in ("kubernetes", "io")]
    is_exact = not is_negation(key)
    while words and (words[-1].isdecimal() or words[-1] in _SUFFIXES | INEXACT):
        is_exact = words.pop() not in INEXACT and is_exact
    return is_exact if words and words[-1] in NOUNS else None


def run_by(name: str) -> str:
    """The product that a job or a deployment runs: Loki's jobs are `namespace/name`."""
    return name.rpartition("/")[2]


def values_of(value: object) -> Iterator[str]:
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            readable = all(plain_key(str(key)) in VALUE_KEYS for key in each)
            left.extend(each.values() if readable else [ANY_PRODUCT])
        elif isinstance(each, list | tuple | set | frozenset):
            left.extend(each)
        elif isinstance(each, str):
            yield from (name for name in re.split(r"[,;\n]", each) if name)
        elif each is not None:
            yield str(each)
