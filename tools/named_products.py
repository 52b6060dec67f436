"""Finds every product that the arguments of a foreign tool name, at any depth.

Plugins and MCP servers choose their own arguments: a product may be in a nested filter, in a list of
conditions or in a query text. A form that this module cannot read counts as a wildcard, so that the
channel's bound refuses it.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from urllib.parse import unquote

ANY_PRODUCT: Final = "*"
PRODUCT_KEYS: Final = frozenset(
    {"product", "products", "product_name", "product_id", "service", "services", "service_name",
     "service_id", "svc", "microservice", "app", "apps", "app_name", "app_id", "application",
     "applications", "application_name", "component", "components", "workload"}
)  # fmt: skip
# Each is a product's key as the last word of a longer one, too: `resource.service.name`, `k8s-app`.
_NOUNS: Final = frozenset(
    {"product", "products", "productname", "service", "services", "servicename", "svc", "microservice",
     "microservices", "app", "apps", "appname", "application", "applications", "component", "components",
     "workload", "workloads"}
)  # fmt: skip
# Keys of an object below a product's key that only hold the value itself: {"service": {"eq": "web"}}.
_VALUE_KEYS: Final = frozenset(
    {"value", "values", "v", "rhs", "right", "query", "name", "names", "id", "eq", "equals", "in", "is",
     "term", "terms", "any_of"}
)  # fmt: skip
# Keys of one condition: {"field": "service", "op": "=", "value": "web"}.
_FIELD_KEYS: Final = frozenset(
    {"field", "default_field", "key", "k", "label", "attribute", "column", "property", "dimension", "name",
     "tag", "lhs", "left"}
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
    {"name", "names", "id", "ids", "keyword", "raw", "exact", "value", "values", "eq", "equals", "in", "is"}
)  # fmt: skip
_NEGATIONS: Final = frozenset(
    {"not", "nor", "none", "except", "without", "exclude", "excludes", "excluded", "excluding"}
)
_SEPARATOR: Final = r"\\?[._-]?"
_NAMES: Final = "|".join(
    (
        r"app\.kubernetes\.io/(?:name|instance|component)",
        *sorted(
            (key.replace("_", _SEPARATOR) for key in PRODUCT_KEYS | _NOUNS), key=len, reverse=True
        ),
    )
)
_QUOTED: Final = r"\([^()]*\)|\[[^\[\]]*\]|\"[^\"]*\"|'[^']*'|`[^`]*`"
# `service="web"`, `service.name:web`, `app in ("web", api)`, `lower(service) != web` within a text.
# A word compares with what is quoted or bracketed only: plain sentences hold such words as well.
_CONDITION: Final = re.compile(
    rf"(?<![A-Za-z0-9])(?:{_NAMES})(?:\.keyword)?[\"'`\]]?(?P<closed>(?:\s+as\s+\w+)?\s?\))?\s*"
    rf"(?:(?P<op>=~|!=|!~|<>|==?|:|[<>]=?|~\*?)\s*(?P<value>{_QUOTED}|[^\s,;&|(){{}}\[\]\"']*)"
    r"|(?<=[\s\"'`\])])(?P<word>(?:not\s+)?(?:in|like|ilike|is|has|contains|rlike|regexp|startswith|endswith|"
    rf"matches|between|similar\s+to)\b)\s*(?P<listed>{_QUOTED}|[(\[]))",
    re.IGNORECASE,
)
_REVERSED: Final = re.compile(
    rf"(?P<value>\"[^\"]*\"|'[^']*')\s*(?P<op>!=|<>|==?|~)\s*(?:\w{{1,40}}\.)?(?:{_NAMES})\b(?!\s*[=:.(~])",
    re.IGNORECASE,
)
_OPTION: Final = re.compile(rf"(?<!\S)--?(?:{_NAMES})\s+(?P<value>[^\s-]\S*)", re.IGNORECASE)
# What may come before a name: a negation, and a function around it.
_NEGATED: Final = re.compile(r"(?:(?<![\w.@-])[-!]@?|\bnot\s+\(?)[\"'`]?\Z", re.IGNORECASE)
_FUNCTION: Final = re.compile(
    r"\b(?:lower|upper|l?trim|rtrim|cast|coalesce|ifnull|to_?lower|to_?upper|to_?string)\(\s?(?:\w+\.)?[\"'`\[]?\Z",
    re.IGNORECASE,
)
# `kubelet.service: failed` and `checkout-service: failed` begin log lines; `resource.service:web` compares.
_OTHER_WORD: Final = re.compile(r"[\w.-]*[\w][.-]\Z")
_SCOPE: Final = re.compile(
    r"(?<![\w.-])(?:resources?|span|attributes?|labels?|tags?|fields?|metadata|k8s|_source)[.-]\Z",
    re.IGNORECASE,
)
_COMMENT: Final = re.compile(r"/\*(?:.*?\*/|.*)|--[^\n]*+", re.DOTALL)
_PERCENT: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_MOST_ENCODINGS: Final = 4
_BEFORE_CHARS: Final = 64
_QUOTES: Final = "\"'`() []"


def plain_key(name: str) -> str:
    """`service.name`, `Service-Name` and `serviceName` are all `service_name`."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[^a-z0-9]+", "_", snake.lower()).strip("_")


def named_products(arguments: object) -> Iterator[str]:
    """Each product that the arguments name; `*` for a wildcard or a form that cannot be read.

    `arguments` is JSON as Python has it. An order is not promised, and a name may come twice.
    """
    left = [(arguments, False)]
    while left:
        value, is_negated = left.pop()
        if isinstance(value, dict):
            found = [*_of_condition(value), *_of_keys(value)]
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
    """Whether a key compares a product exactly; None for a key of something else."""
    key = plain_key(name) if isinstance(name, str) else ""
    if key in PRODUCT_KEYS:
        return True
    words = [word for word in key.split("_") if word not in ("kubernetes", "io")]
    is_exact = not _is_negation(key)
    while words and words[-1] in _SUFFIXES | _INEXACT:
        is_exact = words.pop() in _SUFFIXES and is_exact
    return is_exact if words and words[-1] in _NOUNS else None


def _of_keys(value: dict[object, object]) -> Iterator[str]:
    for key, each in value.items():
        is_exact = _compared(str(key))
        if is_exact is not None:
            yield from _values(each) if is_exact else [ANY_PRODUCT]


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
    named = [_compared(plain[key]) for key in sorted(_FIELD_KEYS & plain.keys())]
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


def _of_list(items: Sequence[object]) -> Iterator[str]:
    """`["service", "=", "web"]`, `["--service", "web"]` and a list of pairs."""
    for at, item in enumerate(items):
        rest = items[at + 1 :]
        if isinstance(item, list | tuple) and len(item) == 2:
            yield from _pair(item[0], item[1:])
        if not isinstance(item, str) or _compared(item) is None or not rest:
            continue
        operator = str(rest[0]).strip().lower()
        if item.startswith("-"):
            yield from _pair(item, rest[:1])
        elif operator in _EXACT - {""}:
            yield from _pair(item, rest[1:])
        elif operator in _INEXACT:
            yield ANY_PRODUCT


def _pair(key: object, values: Iterable[object]) -> Iterator[str]:
    is_exact = _compared(key)
    if is_exact is not None:
        yield from _values(list(values)) if is_exact else [ANY_PRODUCT]


def _json(text: str) -> Sequence[object]:
    """The JSON that a text holds: a list, an object, such a text again, or one of them a line."""
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
    for _ in range(_MOST_ENCODINGS):
        if not _PERCENT.search(text):
            break
        text = unquote(text)
    yield from _of_text(text)
    plain = _COMMENT.sub(" ", text)
    if plain != text:
        yield from _of_text(plain)


def _of_text(text: str) -> Iterator[str]:
    for found in _CONDITION.finditer(text):
        before = text[max(0, found.start() - _BEFORE_CHARS) : found.start()]
        operator = found["op"] or found["word"]
        if found["closed"] and not _FUNCTION.search(before):
            continue
        if _NEGATED.search(before) or operator.strip().lower() not in _EXACT:
            yield ANY_PRODUCT
        elif operator != ":" or not _OTHER_WORD.search(before) or _SCOPE.search(before):
            yield from _listed(found["value"] or found["listed"] or "")
    for found in _REVERSED.finditer(text):
        yield from _listed(found["value"]) if found["op"] in _EXACT else [ANY_PRODUCT]
    for found in _OPTION.finditer(text):
        yield from _listed(found["value"])


def _listed(values: str) -> Iterator[str]:
    for each in re.split(r",|\s+or\s+", values, flags=re.IGNORECASE):
        yield each.strip(_QUOTES) or ANY_PRODUCT
