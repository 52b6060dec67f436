"""Finds every product that the arguments of a foreign tool name, at any depth.

Plugins and MCP servers choose their own arguments: a product may be in a nested filter, in a list of
conditions or in a query text. A form that this module cannot read counts as a wildcard, so that the
channel's bound refuses it.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from tools.hidden_texts import readings
from tools.product_conditions import named_in_text, plain_query
from tools.product_forms import named_in_forms, pod_owner
from tools.product_keys import (
    ANYTHING,
    DEPLOYMENTS,
    EXACT,
    FIELD_KEYS,
    INEXACT,
    NOUNS,
    PRODUCT_KEYS,
    RUNNERS,
    VALUE_KEYS,
    compared,
    is_negation,
    plain_key,
    run_by,
    values_of,
)
from tools.product_names import ANY_PRODUCT

_PODS: Final = frozenset(
    {"pod", "pods", "pod_name", "pod_names", "podname", "kubernetes_pod_name", "exported_pod",
     "replicaset", "replica_set", "statefulset", "stateful_set", "daemonset", "daemon_set"}
)  # fmt: skip
_KINDS: Final = frozenset(
    {"pod", "pods", "po", "deployment", "deployments", "deploy", "replicaset", "replicasets", "rs",
     "statefulset", "statefulsets", "sts", "daemonset", "daemonsets", "ds"}
)  # fmt: skip
_KIND_KEYS: Final = frozenset(
    {"kind", "resource", "resource_type", "object_kind", "type", "entity_type", "node_type"}
)
_OBJECT_KEYS: Final = frozenset(
    {"name", "names", "resource_name", "object_name", "id", "entity", "entity_name", "entity_id"}
)
# Elasticsearch's queries over several fields at once.
_FIELD_QUERIES: Final = frozenset(
    {"multi_match", "combined_fields", "query_string", "simple_query_string"}
)
_PATH_KEYS: Final = frozenset({"path", "url", "uri", "endpoint", "route", "href", "resource"})
# A list beside one of names: {"keys": ["service"], "values": ["web"]}.
_LISTED_VALUES: Final = frozenset(
    {"values", "value", "vals", "row", "data", "cells", "terms", "operands"}
)
# Parts of one condition, each under a key of its own: {"filter_key_1": "service", "filter_value_1": "web"}.
_PART_VALUES: Final = frozenset(
    {"value", "values", "val", "v", "eq", "equals", "term", "terms", "rhs", "right"}
)
# Words of a key whose list holds the names of columns, and no pairs.
_COLUMN_LISTS: Final = frozenset(
    {"by", "field", "fields", "column", "columns", "key", "keys", "name", "names", "label", "labels", "dimensions",
     "attributes", "select", "sort", "order", "metrics", "values", "group", "groups", "properties", "tags", "include",
     "exclude", "headers", "facets", "keywords", "words", "terms", "projection", "aggs", "on", "show", "return"}
)  # fmt: skip
_OPERATOR_KEYS: Final = frozenset({"op", "operator", "operation", "comparison", "match", "type"})
_MOST_LISTS: Final = 400
_PARAMETER: Final = re.compile(r"(?:\A|[?&;\s])([^=&;?\s]{1,64})=([^&;\s#]*)")
_SEGMENT: Final = re.compile(
    r"(?:\A|/)(?:products|services?|svc|apps|applications|components|workloads|deployments?)/(?P<value>[^/?#\s]+)",
    re.IGNORECASE,
)
_FILE: Final = re.compile(r"\.[A-Za-z]{1,5}\Z")


def named_products(arguments: object) -> Iterator[str]:
    """Each product that the arguments name; `*` for a wildcard or a form that cannot be read.

    `arguments` is JSON as Python has it. An order is not promised, and a name may come twice.
    """
    left = [(arguments, False)]
    while left:
        value, is_negated = left.pop()
        if isinstance(value, dict):
            names = DEPLOYMENTS if value is arguments else RUNNERS
            found = [*_of_condition(value), *_of_keys(value), *_of_runners(value, names)]
            found += [*_of_pods(value), *_of_lists(value), *_of_parts(value.items())]
            left += [
                (each, is_negated or is_negation(plain_key(str(key))))
                for key, each in value.items()
            ]
        elif isinstance(value, list | tuple | set | frozenset):
            found = list(_of_list(tuple(value)))
            left += [(each, is_negated) for each in value]
        elif isinstance(value, str):
            inner = _json(value)
            found = [] if inner else list(_of_encoded(value))
            left += [(each, is_negated) for each in inner]
        else:
            continue
        yield from [ANY_PRODUCT] if is_negated and found else found


def _of_keys(value: dict[object, object]) -> Iterator[str]:
    for key, each in value.items():
        name = plain_key(str(key))
        is_exact = compared(name)
        is_count = isinstance(each, int | float) and name not in PRODUCT_KEYS
        if is_exact is not None and not is_count:
            yield from values_of(each) if is_exact else [ANY_PRODUCT]
        elif str(key).startswith("$") and isinstance(each, list) and len(each) == 2:
            yield from _pair(each[0], each[1:]) if name in EXACT else _pair(f"not {each[0]}", "*")
        elif name in _FIELD_QUERIES and isinstance(each, dict):
            yield from _of_field_query(each)
        elif name in _PATH_KEYS and isinstance(each, str):
            yield from _of_path(each)
        elif isinstance(each, list) and _COLUMN_LISTS.isdisjoint(name.split("_")):
            yield from _of_flat_pairs(each)


def _of_flat_pairs(items: Sequence[object]) -> Iterator[str]:
    """Of a list such as ["level", "error", "service", "web"]."""
    for key, value in pairwise(items):
        is_key = compared(key) or plain_key(str(key)) in DEPLOYMENTS
        is_value = isinstance(value, str) and not value.startswith(("-", "$"))
        if is_key and is_value and compared(value) is None and value not in EXACT | INEXACT:
            yield from values_of(value)


def _of_runners(value: dict[object, object], names: Collection[str]) -> Iterator[str]:
    plain = {plain_key(str(key)).removeprefix("k8s_"): each for key, each in value.items()}
    if any(plain_key(str(plain[key])) in RUNNERS for key in FIELD_KEYS & plain.keys()):
        names = VALUE_KEYS - FIELD_KEYS
    for key in plain.keys() & names:
        yield from (run_by(each) for each in values_of(plain[key]) if each not in ANYTHING)


def _of_pods(value: dict[object, object]) -> Iterator[str]:
    plain = {plain_key(str(key)).removeprefix("k8s_"): each for key, each in value.items()}
    kinds = {plain_key(str(plain[key])) for key in _KIND_KEYS & plain.keys()}
    if kinds & NOUNS:
        for key in plain.keys() & _OBJECT_KEYS:
            yield from values_of(plain[key])
    keys = _PODS | (_OBJECT_KEYS if kinds & _KINDS else frozenset())
    if any(plain_key(str(plain[key])) in _PODS for key in FIELD_KEYS & plain.keys()):
        keys |= VALUE_KEYS - FIELD_KEYS
    for key in plain.keys() & keys:
        if not isinstance(plain[key], bool | int | float):
            yield from (pod_owner(each) for each in values_of(plain[key]) if each not in ANYTHING)


def _of_field_query(query: dict[object, object]) -> Iterator[str]:
    told = {plain_key(str(key)): value for key, value in query.items()}
    fields = told.get("fields")
    named = [fields] if isinstance(fields, str) else fields
    plain = [str(each).partition("^")[0] for each in named] if isinstance(named, list) else []
    if any(compared(each) is not None for each in plain):
        yield from values_of(told.get("query"))


def _of_path(path: str) -> Iterator[str]:
    for each in filter(None, readings(path)):
        for found in _SEGMENT.finditer(each):
            if not _FILE.search(found["value"]):
                yield found["value"]


def _of_condition(condition: dict[object, object]) -> Iterator[str]:
    plain = {plain_key(str(key)): value for key, value in condition.items()}
    fields = [plain[key] for key in sorted(FIELD_KEYS & plain.keys())]
    named = [compared(next(values_of(each), "")) for each in fields]
    if not any(each is not None for each in named):
        return
    for key, value in plain.items():
        if key in _OPERATOR_KEYS:
            if str(value).strip().lower() not in EXACT:
                yield ANY_PRODUCT
        elif key in VALUE_KEYS - FIELD_KEYS:
            yield from values_of(value)
        elif key not in FIELD_KEYS and (key, value) not in (
            ("is_regex", False),
            ("is_equal", True),
        ):
            yield ANY_PRODUCT


def _of_parts(pairs: Iterable[tuple[object, object]]) -> Iterator[str]:
    """Of one condition under several keys: `key=service&value=web`, `filters[0][key]`."""
    found: list[dict[object, object]] = []
    open_at: dict[str, dict[object, object]] = {}
    for key, value in pairs:
        words = plain_key(str(key)).split("_")
        at = max((at for at, each in enumerate(words) if not each.isdecimal()), default=0)
        word = words.pop(at)
        condition = open_at.setdefault("_".join(words), {})
        if word in condition or not condition:
            condition = open_at["_".join(words)] = {}
            found.append(condition)
        if word in FIELD_KEYS | _OPERATOR_KEYS | _PART_VALUES:
            condition[word] = value
    for condition in found:
        if not _PART_VALUES.isdisjoint(condition):
            yield from _of_condition(condition)


def _of_lists(value: dict[object, object]) -> Iterator[str]:
    """Of {"columns": ["level", "service"], "rows": [["error", "web"]]}, by any other names."""
    lists = {plain_key(str(key)): each for key, each in value.items() if isinstance(each, list)}
    headers = [name for name, each in lists.items() if _columns(each)]
    if len(headers) * len(lists) > _MOST_LISTS:
        yield ANY_PRODUCT
        return
    for name in headers:
        for other in lists.keys() - {name}:
            is_row = other.rpartition("_")[2] in _LISTED_VALUES
            rows = [lists[other]] if is_row else []
            yield from _of_rows(lists[name], [*rows, *lists[other]])


def _columns(header: Sequence[object]) -> list[tuple[int, bool]]:
    """The places of the products' keys in a table's head, and whether each compares exactly."""
    names = [
        next((each for key, each in column.items() if plain_key(str(key)) in FIELD_KEYS), None)
        if isinstance(column, dict)
        else column
        for column in header
    ]
    found = ((at, compared(name)) for at, name in enumerate(names))
    return [(at, is_exact) for at, is_exact in found if is_exact is not None]


def _of_rows(header: Sequence[object], rows: Iterable[object]) -> Iterator[str]:
    columns = _columns(header)
    for row in rows:
        cells = row if isinstance(row, list) else []
        for at, is_exact in columns:
            if at >= len(cells):
                break
            if compared(cells[at]) is None:
                yield from values_of(cells[at]) if is_exact else [ANY_PRODUCT]


def _of_list(items: Sequence[object]) -> Iterator[str]:
    head = items[0] if items and isinstance(items[0], list) else []
    if len(head) != 2 or compared(head[0]) is None:  # else it is a pair
        yield from _of_rows(head, items[1:])
    for at, item in enumerate(items):
        rest = items[at + 1 :]
        if isinstance(item, list | tuple) and len(item) == 2:
            yield from _pair(item[0], item[1:])
        if not isinstance(item, str) or not rest:
            continue
        operator = str(rest[0]).strip().lower()
        if item.startswith("-"):
            yield from _pair(item, rest[:1])
        elif operator in EXACT - {""}:
            yield from _pair(item, rest[1:])
        elif operator in INEXACT and compared(item) is not None:
            yield ANY_PRODUCT


def _pair(key: object, values: Iterable[object]) -> Iterator[str]:
    is_exact, name = compared(key), plain_key(str(key)).removeprefix("k8s_")
    if is_exact is not None:
        yield from values_of(list(values)) if is_exact else [ANY_PRODUCT]
    elif name in _PODS | DEPLOYMENTS:
        yield from (pod_owner(each) for each in values_of(list(values)) if each not in ANYTHING)


def _json(text: str) -> Sequence[object]:
    if not text.lstrip().startswith(("{", "[", '"')):
        return ()
    for parts in ([text], [line for line in text.split("\n") if line.strip()]):
        try:
            values = [json.loads(part, object_pairs_hook=_every_pair) for part in parts]
        except (ValueError, RecursionError):
            continue
        return [value for value in values if isinstance(value, dict | list | str)]
    return ()


def _every_pair(pairs: list[tuple[str, object]]) -> object:
    """An object; of one that has a key twice, every pair: readers differ in which one counts."""
    value = dict(pairs)
    return value if len(value) == len(pairs) else [value, *({key: each} for key, each in pairs)]


def _of_encoded(text: str) -> Iterator[str]:
    for each in readings(text):
        if each is None:
            yield ANY_PRODUCT
            continue
        inner = _json(each) if each != text else ()
        for value in inner:
            yield from named_products(value)
        yield from named_in_text(each)
        yield from named_in_forms(each)
        yield from _of_parts(_PARAMETER.findall(each))
        plain = plain_query(each)
        if plain != each:
            yield from named_in_text(plain)
