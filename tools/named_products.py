"""Finds every product that the arguments of a foreign tool name, at any depth.

Plugins and MCP servers choose their own arguments: a product may be in a nested filter, in a list of
conditions or in a query text. A form that this module cannot read counts as a wildcard, so that the
channel's bound refuses it.
"""

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from tools.hidden_texts import plain_text, readings
from tools.product_forms import named_in_forms, pod_owner
from tools.product_names import ANY_PRODUCT

PRODUCT_KEYS: Final = frozenset(
    {"product", "products", "product_name", "product_id", "service", "services", "service_name",
     "service_id", "svc", "microservice", "app", "apps", "app_name", "app_id", "application",
     "applications", "application_name", "cloud_role_name", "component", "components", "workload"}
)  # fmt: skip
# Each is a product's key as the last word of a longer one, too: `resource.service.name`, `k8s-app`.
_NOUNS: Final = frozenset(
    {"product", "products", "productname", "service", "services", "servicename", "svc", "microservice",
     "microservices", "app", "apps", "appname", "application", "applications", "component", "components",
     "workload", "workloads"}
)  # fmt: skip
# What runs a product, and is called like it more often than not. CI has jobs and deployments too: these
# name a product only where they hold a text, and a plain argument `job` is CI's.
_DEPLOYMENTS: Final = frozenset({"deployment", "deployments", "deployment_name"})
_PODS: Final = frozenset(
    {"pod", "pods", "pod_name", "pod_names", "podname", "kubernetes_pod_name", "exported_pod",
     "replicaset", "replica_set", "statefulset", "stateful_set", "daemonset", "daemon_set"}
)  # fmt: skip
_RUNNERS: Final = _DEPLOYMENTS | {"job", "job_name"}
_KINDS: Final = frozenset(
    {"pod", "pods", "po", "deployment", "deployments", "deploy", "replicaset", "replicasets", "rs",
     "statefulset", "statefulsets", "sts", "daemonset", "daemonsets", "ds"}
)  # fmt: skip
_KIND_KEYS: Final = frozenset({"kind", "resource", "resource_type", "object_kind", "type"})
_OBJECT_KEYS: Final = frozenset({"name", "names", "resource_name", "object_name", "id"})
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
_MOST_LISTS: Final = 400
_PARAMETER: Final = re.compile(r"(?:\A|[?&;\s])([^=&;?\s]{1,64})=([^&;\s#]*)")
# Words that begin a sentence rather than name a product: "the app: is it down?".
_PROSE: Final = frozenset(
    {"a", "an", "and", "any", "are", "as", "at", "but", "by", "can", "could", "did", "do", "does", "for",
     "from", "has", "have", "how", "i", "if", "in", "is", "it", "its", "no", "not", "of", "on", "or", "our",
     "please", "since", "so", "that", "the", "there", "they", "this", "to", "was", "we", "were", "what",
     "when", "where", "which", "who", "why", "will", "with", "you"}
)  # fmt: skip
# Keys of an object below a product's key that only hold the value itself: {"service": {"eq": "web"}}.
_VALUE_KEYS: Final = frozenset(
    {"value", "values", "label_value", "tag_value", "v", "rhs", "right", "query", "name", "names", "id", "eq", "equals", "in", "is",
     "term", "terms", "any_of"}
)  # fmt: skip
# Keys of one condition: {"field": "service", "op": "=", "value": "web"}.
_FIELD_KEYS: Final = frozenset(
    {"field", "default_field", "key", "k", "label", "label_name", "attribute", "column", "property",
     "dimension", "name", "tag", "tag_name", "lhs", "left"}
)  # fmt: skip
_OPERATOR_KEYS: Final = frozenset({"op", "operator", "operation", "comparison", "match", "type"})
_EXACT: Final = frozenset(
    {"", "=", "==", ":", "eq", "equals", "equal", "in", "is", "term", "terms"}
)
_INEXACT: Final = frozenset(
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
_NAMES: Final = "|".join(
    (
        r"app\.kubernetes\.io/(?:name|instance|component)",
        *sorted(
            (key.replace("_", _SEPARATOR) for key in PRODUCT_KEYS | _NOUNS | _RUNNERS),
            key=len,
            reverse=True,
        ),
    )
)
_QUOTED: Final = r"\([^()]*\)|\[[^\[\]]*\]|\"[^\"]*\"|'[^']*'|`[^`]*`"
# `service="web"`, `service.name:web`, `app in ("web", api)`, `lower(service) != web` within a text.
# After a word only quoted or bracketed values count: plain sentences hold such words as well.
_CONDITION: Final = re.compile(
    rf"(?<![A-Za-z0-9])(?P<name>{_NAMES})(?:\.keyword)?(?:[\"'`]?\]|[\"'`]|\[\w*\])?(?P<closed>(?:\s+as\s+\w+)?\s?\))?\s*"
    rf"(?:(?P<op>=~|!=|!~|<>|==?|:|[<>]=?|~\*?)(?P<gap>\s*)(?P<value>{_QUOTED}|[^\s,;&|(){{}}\[\]\"']*)"
    r"|(?<=[\s\"'`\])])(?P<word>(?:not\s+)?(?:in|eq|ne|in~|!in~?|when|has_any|has_all|like|ilike|is|has|contains|rlike|regexp|startswith|endswith|"
    rf"matches|between|similar\s+to)(?!\w))\s*(?P<listed>{_QUOTED}|[(\[]))",
    re.IGNORECASE,
)
_REVERSED: Final = re.compile(
    rf"(?P<value>\"[^\"]*\"|'[^']*')\s*(?P<op>!=|<>|==?|~)\s*(?:\w{{1,40}}\.)?(?:{_NAMES})\b(?!\s*[=:.(~])",
    re.IGNORECASE,
)
_ALIAS: Final = re.compile(
    rf"(?<!cast\()(?<![A-Za-z0-9])(?:{_NAMES})[\"'`\]]?\s+as\s+[\"'`\[]?(\w+)", re.IGNORECASE
)
# `('service', 'web')`, `equals(service, "web")`, and `'web' as service`.
_PAIR: Final = re.compile(
    rf"(?:\b(?P<function>\w+)\s?)?\(\s*[\"'`]?(?:\w{{1,40}}\.)?(?:{_NAMES})[\"'`]?\s*,\s*"
    rf"(?:[\"'](?P<op>[^\"'\s]{{1,12}})[\"']\s*,\s*)?(?P<value>\"[^\"]*\"|'[^']*')\s*+(?:,\s*+)?\)"
    rf"|(?P<named>\"[^\"]*\"|'[^']*')\s+as\s+[\"'`\[]?(?:{_NAMES})\b",
    re.IGNORECASE,
)
_COMPARISONS: Final = _EXACT | _INEXACT | {
    "strpos", "instr", "position", "nullif", "starts_with", "ends_with", "filter", "where", "label", "tag"
}  # fmt: skip
_OPTION: Final = re.compile(rf"(?<!\S)--?(?:{_NAMES})\s+(?P<value>[^\s-]\S*)", re.IGNORECASE)
# What may come before a name.
_NEGATED: Final = re.compile(r"(?:(?<![\w.@-])[-!]@?|\bnot\s+\(?)[\"'`]?\Z", re.IGNORECASE)
# `kubelet.service: failed` and `checkout-service: failed` begin log lines; `resource.service:web` compares.
_OTHER_WORD: Final = re.compile(r"[\w.-]*[\w][.-]\Z")
_SCOPE: Final = re.compile(
    r"(?<![\w.-])(?:resources?|span|attributes?|labels?|tags?|fields?|metadata|k8s|_source)[.-]\Z",
    re.IGNORECASE,
)
_JOINED: Final = re.compile(r"\s*(?:\|\||\+|\.\.)\s*[\w\"'$(]")  # more of the value follows
_COMMENT: Final = re.compile(r"/\*(?:.*?\*/|.*)|--[^\n]*+", re.DOTALL)
_SEGMENT: Final = re.compile(
    r"(?:\A|/)(?:products|services?|svc|apps|applications|components|workloads|deployments?)/(?P<value>[^/?#\s]+)",
    re.IGNORECASE,
)
_FILE: Final = re.compile(r"\.[A-Za-z]{1,5}\Z")
_ANYTHING: Final = frozenset({"", "*", ".*", ".+", "^.*$", "^.+$"})
_BEFORE_CHARS: Final = 64
_QUOTES: Final = "\"'`() []"


def plain_key(name: str) -> str:
    """`service.name`, `Service-Name` and `serviceName` are all `service_name`."""
    letters = "".join(
        each
        for each in unicodedata.normalize("NFKD", plain_text(name))
        if not unicodedata.combining(each)
    )
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", letters)
    return re.sub(r"[^a-z0-9]+", "_", snake.lower()).strip("_")


def named_products(arguments: object) -> Iterator[str]:
    """Each product that the arguments name; `*` for a wildcard or a form that cannot be read.

    `arguments` is JSON as Python has it. An order is not promised, and a name may come twice.
    """
    left = [(arguments, False)]
    while left:
        value, is_negated = left.pop()
        if isinstance(value, dict):
            names = _DEPLOYMENTS if value is arguments else _RUNNERS
            found = [*_of_condition(value), *_of_keys(value), *_of_runners(value, names)]
            found += [*_of_pods(value), *_of_lists(value), *_of_parts(value.items())]
            left += [
                (each, is_negated or _is_negation(plain_key(str(key))))
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


def _is_negation(key: str) -> bool:
    return not _NEGATIONS.isdisjoint(key.split("_"))


def _compared(name: object) -> bool | None:
    key = plain_key(name) if isinstance(name, str) else ""
    if key in PRODUCT_KEYS:
        return True
    words = [word for word in key.split("_") if word not in ("kubernetes", "io")]
    is_exact = not _is_negation(key)
    while words and (words[-1].isdecimal() or words[-1] in _SUFFIXES | _INEXACT):
        is_exact = words.pop() not in _INEXACT and is_exact
    return is_exact if words and words[-1] in _NOUNS else None


def _of_keys(value: dict[object, object]) -> Iterator[str]:
    for key, each in value.items():
        name = plain_key(str(key))
        is_exact = _compared(name)
        is_count = isinstance(each, int | float) and name not in PRODUCT_KEYS
        if is_exact is not None and not is_count:
            yield from _values(each) if is_exact else [ANY_PRODUCT]
        elif str(key).startswith("$") and isinstance(each, list) and len(each) == 2:
            yield from _pair(each[0], each[1:]) if name in _EXACT else _pair(f"not {each[0]}", "*")
        elif name in _FIELD_QUERIES and isinstance(each, dict):
            yield from _of_field_query(each)
        elif name in _PATH_KEYS and isinstance(each, str):
            yield from _of_path(each)


def _of_runners(value: dict[object, object], names: Collection[str]) -> Iterator[str]:
    plain = {plain_key(str(key)).removeprefix("k8s_"): each for key, each in value.items()}
    if any(plain_key(str(plain[key])) in _RUNNERS for key in _FIELD_KEYS & plain.keys()):
        names = _VALUE_KEYS - _FIELD_KEYS
    for key in plain.keys() & names:
        yield from (_run_by(each) for each in _values(plain[key]) if each not in _ANYTHING)


def _of_pods(value: dict[object, object]) -> Iterator[str]:
    plain = {plain_key(str(key)).removeprefix("k8s_"): each for key, each in value.items()}
    kinds = {plain_key(str(plain[key])) for key in _KIND_KEYS & plain.keys()}
    keys = _PODS | (_OBJECT_KEYS if kinds & _KINDS else frozenset())
    if any(plain_key(str(plain[key])) in _PODS for key in _FIELD_KEYS & plain.keys()):
        keys |= _VALUE_KEYS - _FIELD_KEYS
    for key in plain.keys() & keys:
        if not isinstance(plain[key], bool | int | float):
            yield from (pod_owner(each) for each in _values(plain[key]) if each not in _ANYTHING)


def _of_field_query(query: dict[object, object]) -> Iterator[str]:
    told = {plain_key(str(key)): value for key, value in query.items()}
    fields = told.get("fields")
    named = [fields] if isinstance(fields, str) else fields
    plain = [str(each).partition("^")[0] for each in named] if isinstance(named, list) else []
    if any(_compared(each) is not None for each in plain):
        yield from _values(told.get("query"))


def _of_path(path: str) -> Iterator[str]:
    for each in filter(None, readings(path)):
        for found in _SEGMENT.finditer(each):
            if not _FILE.search(found["value"]):
                yield found["value"]


def _run_by(name: str) -> str:
    """The product that a job or a deployment runs: Loki's jobs are `namespace/name`."""
    return name.rpartition("/")[2]


def _values(value: object) -> Iterator[str]:
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            readable = all(plain_key(str(key)) in _VALUE_KEYS for key in each)
            left.extend(each.values() if readable else [ANY_PRODUCT])
        elif isinstance(each, list | tuple | set | frozenset):
            left.extend(each)
        elif isinstance(each, str):
            yield from (name for name in re.split(r"[,;\n]", each) if name)
        elif each is not None:
            yield str(each)


def _of_condition(condition: dict[object, object]) -> Iterator[str]:
    plain = {plain_key(str(key)): value for key, value in condition.items()}
    fields = [plain[key] for key in sorted(_FIELD_KEYS & plain.keys())]
    named = [_compared(next(_values(each), "")) for each in fields]
    if not any(each is not None for each in named):
        return
    for key, value in plain.items():
        if key in _OPERATOR_KEYS:
            if str(value).strip().lower() not in _EXACT:
                yield ANY_PRODUCT
        elif key in _VALUE_KEYS - _FIELD_KEYS:
            yield from _values(value)
        elif key not in _FIELD_KEYS and (key, value) not in (
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
        if word in _FIELD_KEYS | _OPERATOR_KEYS | _PART_VALUES:
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
        next((each for key, each in column.items() if plain_key(str(key)) in _FIELD_KEYS), None)
        if isinstance(column, dict)
        else column
        for column in header
    ]
    found = ((at, _compared(name)) for at, name in enumerate(names))
    return [(at, is_exact) for at, is_exact in found if is_exact is not None]


def _of_rows(header: Sequence[object], rows: Iterable[object]) -> Iterator[str]:
    columns = _columns(header)
    for row in rows:
        cells = row if isinstance(row, list) else []
        for at, is_exact in columns:
            if at >= len(cells):
                break
            if _compared(cells[at]) is None:
                yield from _values(cells[at]) if is_exact else [ANY_PRODUCT]


def _of_list(items: Sequence[object]) -> Iterator[str]:
    head = items[0] if items and isinstance(items[0], list) else []
    if len(head) != 2 or _compared(head[0]) is None:  # else it is a pair
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
        elif operator in _EXACT - {""}:
            yield from _pair(item, rest[1:])
        elif operator in _INEXACT and _compared(item) is not None:
            yield ANY_PRODUCT


def _pair(key: object, values: Iterable[object]) -> Iterator[str]:
    is_exact, name = _compared(key), plain_key(str(key)).removeprefix("k8s_")
    if is_exact is not None:
        yield from _values(list(values)) if is_exact else [ANY_PRODUCT]
    elif name in _PODS | _DEPLOYMENTS:
        yield from (pod_owner(each) for each in _values(list(values)) if each not in _ANYTHING)


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
        yield from _of_text(each)
        yield from named_in_forms(each, _compared)
        yield from _of_parts(_PARAMETER.findall(each))
        plain = _aliased(_COMMENT.sub(" ", each))
        if plain != each:
            yield from _of_text(plain)


def _aliased(text: str) -> str:
    """With a product's key for each name that a query gives it: `service as s … where s = 'web'`."""
    names = {found[1] for found in _ALIAS.finditer(text)}
    return re.sub(r"\w+", lambda each: "service" if each[0] in names else each[0], text)


def _of_text(text: str) -> Iterator[str]:
    for found in _CONDITION.finditer(text):
        before = text[max(0, found.start() - _BEFORE_CHARS) : found.start()]
        operator = found["op"] or found["word"]
        if found["closed"] and not (found["value"] or found["listed"] or "").startswith(("'", '"')):
            continue
        if operator == ":" and found["gap"] and found["value"].lower() in _PROSE:
            continue
        if plain_key(found["name"]) in _RUNNERS:
            yield from _of_runner(
                operator, found["value"] or found["listed"] or "", found["gap"] or ""
            )
            continue
        if (
            _NEGATED.search(before)
            or operator.strip().lower() not in _EXACT
            or _JOINED.match(text, found.end())
        ):
            yield ANY_PRODUCT
        elif operator != ":" or not _OTHER_WORD.search(before) or _SCOPE.search(before):
            yield from _listed(found["value"] or found["listed"] or "")
    for found in _REVERSED.finditer(text):
        yield from _listed(found["value"]) if found["op"] in _EXACT else [ANY_PRODUCT]
    yield from _of_pairs(text)
    for found in _OPTION.finditer(text):
        yield from _listed(found["value"])


def _of_pairs(text: str) -> Iterator[str]:
    for found in _PAIR.finditer(text):
        if found["named"]:
            yield from _listed(found["named"])
        elif (function := (found["function"] or "").lower()) in _COMPARISONS:
            is_exact = {function, found["op"] or ""} <= _EXACT | {"filter", "where", "label", "tag"}
            yield from _listed(found["value"]) if is_exact else [ANY_PRODUCT]


def _of_runner(operator: str, value: str, gap: str) -> Iterator[str]:
    """A job that is compared with anything at all narrows nothing: other conditions do."""
    if value.strip(_QUOTES) in _ANYTHING or (operator == ":" and gap):
        return
    if operator.strip().lower() not in _EXACT:
        yield ANY_PRODUCT
    else:
        yield from map(_run_by, _listed(value))


def _listed(values: str) -> Iterator[str]:
    for each in re.split(r",|\s+or\s+", values, flags=re.IGNORECASE):
        yield each.strip(_QUOTES) or ANY_PRODUCT
