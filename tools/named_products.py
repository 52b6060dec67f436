"""Finds every product that the arguments of a foreign tool name, at any depth.

Plugins and MCP servers choose their own arguments: a product may be in a nested filter, in a list of
conditions or in a query text. A form that this module cannot read counts as a wildcard, so that the
channel's bound refuses it.
"""

import re
from collections.abc import Iterator
from typing import Final

ANY_PRODUCT: Final = "*"
PRODUCT_KEYS: Final = frozenset(
    {"product", "products", "product_name", "product_id", "service", "services", "service_name",
     "service_id", "svc", "microservice", "app", "apps", "app_name", "app_id", "application",
     "applications", "application_name", "component", "components", "workload"}
)  # fmt: skip
# Keys of an object below a product's key that only hold the value itself: {"service": {"eq": "web"}}.
_VALUE_KEYS: Final = frozenset(
    {
        "value",
        "values",
        "name",
        "names",
        "id",
        "eq",
        "equals",
        "in",
        "is",
        "term",
        "terms",
        "any_of",
    }
)
# Keys of one condition: {"field": "service", "op": "=", "value": "web"}.
_FIELD_KEYS: Final = frozenset(
    {"field", "key", "label", "attribute", "column", "property", "dimension", "name", "tag"}
)
_OPERATOR_KEYS: Final = frozenset({"op", "operator", "operation", "comparison", "match", "type"})
_EXACT: Final = frozenset(
    {"", "=", "==", ":", "eq", "equals", "equal", "in", "is", "term", "terms"}
)
_NAMES: Final = "|".join(
    sorted((key.replace("_", "[._-]?") for key in PRODUCT_KEYS), key=len, reverse=True)
)
# `service="web"`, `service.name:web`, `app in (web, api)`, `service != web` within a text.
_CONDITION: Final = re.compile(
    rf"(?<![\w.-])[\"'`]?(?:{_NAMES})[\"'`]?\s*"
    r"(?P<op>=~|!=|!~|<>|==?|:|\s(?:not\s+)?(?:in|like|ilike|is)\b)\s*"
    r"(?P<value>\([^()]*\)|\[[^\[\]]*\]|\"[^\"]*\"|'[^']*'|[^\s,;&|(){}\[\]\"']*)",
    re.IGNORECASE,
)
_QUOTES: Final = "\"'`() []"


def plain_key(name: str) -> str:
    """`service.name`, `Service-Name` and `serviceName` are all `service_name`."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[^a-z0-9]+", "_", snake.lower()).strip("_")


def named_products(arguments: object) -> Iterator[str]:
    """Each product that the arguments name; `*` for a wildcard or a form that cannot be read.

    `arguments` is JSON as Python has it. An order is not promised, and a name may come twice.
    """
    left = [arguments]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            yield from _of_condition(value)
            for key, each in value.items():
                if plain_key(str(key)) in PRODUCT_KEYS:
                    yield from _values(each)
                left.append(each)
        elif isinstance(value, list | tuple | set | frozenset):
            left.extend(value)
        elif isinstance(value, str):
            yield from _of_text(value)


def _values(value: object) -> Iterator[str]:
    """What a product's own key holds."""
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            readable = all(plain_key(str(key)) in _VALUE_KEYS for key in each)
            left.extend(each.values() if readable else [ANY_PRODUCT])
        elif isinstance(each, list | tuple | set | frozenset):
            left.extend(each)
        elif each is not None and each != "":
            yield str(each)


def _of_condition(condition: dict[object, object]) -> Iterator[str]:
    """An object that names a product's field and compares it: only an exact comparison is readable."""
    plain = {plain_key(str(key)): value for key, value in condition.items()}
    fields = [plain[key] for key in sorted(_FIELD_KEYS & plain.keys())]
    if not any(isinstance(each, str) and plain_key(each) in PRODUCT_KEYS for each in fields):
        return
    for key, value in plain.items():
        if key in _OPERATOR_KEYS:
            if str(value).strip().lower() not in _EXACT:
                yield ANY_PRODUCT
        elif key in _VALUE_KEYS - _FIELD_KEYS:
            yield from _values(value)
        elif key not in _FIELD_KEYS:
            yield ANY_PRODUCT


def _of_text(text: str) -> Iterator[str]:
    for found in _CONDITION.finditer(text):
        if found["op"].strip().lower() not in _EXACT:
            yield ANY_PRODUCT
            continue
        listed = (each.strip(_QUOTES) for each in found["value"].split(","))
        yield from (each or ANY_PRODUCT for each in listed)
