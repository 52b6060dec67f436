"""Forms in which a query text names a product: a row of CSV, a node of a graph, a pod, a section.

Each function yields the product, or `*` for what cannot be read.
"""

import csv
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from tools.product_keys import compared
from tools.product_names import ANY_PRODUCT, POD_TAIL, workload_of

_LITERAL: Final = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
_MOST_NODES: Final = 30
_DELIMITERS: Final = ",;\t|"
# Cypher's `(s:Service {name: 'web'})`.
_NODE: Final = re.compile(
    r"\(\s*(?P<variable>\w*)\s*:\s*`?(?P<label>[A-Za-z]\w*)`?\s*(?P<fields>\{[^{}]*\})?"
)
_FIELD: Final = re.compile(
    rf"\b(?:name|id|key|title|slug)`?\s*(?P<op>=~|<>|!=|[=:]|\bin\b|\bstarts\s+with\b|\bends\s+with\b|\bcontains\b)"
    rf"\s*(?P<values>\[[^\[\]]*\]|{_LITERAL}|[$:?]\w*)?",
    re.IGNORECASE,
)
_EXACT: Final = frozenset({"=", ":", "in"})
# GraphQL's `service(name: "web")`, and a block of a configuration.
_CALLED: Final = re.compile(
    rf"\b(?P<label>[A-Za-z]\w*)\s*[({{]\s*(?P<fields>(?:name|id|key|slug)\s*[:=]\s*(?:{_LITERAL}|\$\w+))"
)
# Gremlin's `has('service', 'name', 'web')`.
_HAS: Final = re.compile(
    rf"\bhas\(\s*(?P<key>{_LITERAL})\s*,(?P<rest>[^()]*(?:\([^()]*\))?[^()]*)\)"
)
_LITERALS: Final = re.compile(_LITERAL)
# SQL's `(service, level) = ('web', 'error')`, `s(service) as (values ('web'))` and the other way round.
_ROWS: Final = r"\((?:\s*values\s*\()?[^()]*\)(?:\s*,\s*\([^()]*\))*"
_COMPARED_ROWS: Final = (
    re.compile(
        rf"\((?P<header>[^()]*)\)\s*(?P<op>[=<>!]+|(?:not\s+)?in\b|as\b|values\b)\s*+\w*+\s*+\(?(?P<rows>{_ROWS})",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?P<op>values)\s*(?P<rows>{_ROWS})\s*\)\s*(?:as\s+)?\W?\w+\W?\((?P<header>[^()]*)\)",
        re.IGNORECASE,
    ),
)
_SECTION: Final = re.compile(r"(?m)^[ \t]*\[{1,2}([\w.-]+)\]{1,2}[ \t]*$")
_REPLICA: Final = re.compile(
    r"(?<![\w.-])[a-z0-9](?:[a-z0-9-]{0,60}[a-z0-9])?"
    r"-[bcdfghjklmnpqrstvwxz2456789]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5}(?![\w-])"
)
_KUBECTL: Final = re.compile(r"\bkubectl\b[^\n;|&]*")
_POD_PATH: Final = re.compile(r"(?:^|[\s/\"'=])pods?/(?P<pod>[a-z0-9][a-z0-9-]{0,252})")
_POD_CONDITION: Final = re.compile(
    rf"(?<![A-Za-z0-9])(?:k8s[._])?(?:kubernetes[._])?(?:exported_)?pod(?:[._]?names?)?[\"'`]?\s*"
    rf"(?P<op>=~|==?|:)\s*(?P<value>{_LITERAL}|[a-z0-9][a-z0-9-]*)",
    re.IGNORECASE,
)
_ANY_POD: Final = re.compile(r"\^?(?:\.[*+])?\$?")
# Pattern ends that match Kubernetes' suffixes of one workload's name, and no other name.
_OWN_TAIL: Final = re.compile(rf"{re.escape(POD_TAIL)}|-(?:\[0-9\]|\\{{1,2}}d)(?:\+|\{{\d,\d\}})?")
_SHORT_TAIL: Final = re.compile(r"(?P<owner>.+)-[a-z0-9]*[0-9][a-z0-9]*-[a-z0-9]{1,10}")
_NUMBER_TAIL: Final = re.compile(r"(?P<owner>.+)-[0-9]{1,3}")


def pod_owner(pod: str) -> str:
    """What runs a pod, by its name; the whole name where its end is no usual one."""
    name = pod.strip().rpartition("/")[2].partition(".")[0]
    if re.fullmatch(f".+?{POD_TAIL}", name):
        return workload_of(name)
    short = _SHORT_TAIL.fullmatch(name) or _NUMBER_TAIL.fullmatch(name)
    return short["owner"] if short else name


def named_in_forms(text: str) -> Iterator[str]:
    """What the text names in one of these forms."""
    yield from _of_rows(text)
    yield from _of_compared_rows(text)
    yield from _of_nodes(text)
    yield from _of_steps(text)
    yield from _of_pods(text)
    if any(compared(found[1]) is not None for found in _SECTION.finditer(text)):
        yield ANY_PRODUCT


def _of_rows(text: str) -> Iterator[str]:
    lines = re.split(r"\r\n|\r|\n", text.strip())
    if len(lines) < 2:
        return
    for delimiter in _DELIMITERS:
        rows = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
        try:
            header, *cells = rows
        except csv.Error:
            yield ANY_PRODUCT
            return
        is_table = len(header) > 1 or _is_word(header)
        columns = [at for at, name in enumerate(header) if compared(name.strip()) is not None]
        if is_table and columns:
            own = (row[at].strip() for row in cells for at in columns if at < len(row))
            yield from (each for each in own if each)
            return


def _of_compared_rows(text: str) -> Iterator[str]:
    for found in (each for form in _COMPARED_ROWS for each in form.finditer(text)):
        header = [name.strip(" \"'`[]").rpartition(".")[2] for name in found["header"].split(",")]
        columns = [at for at, name in enumerate(header) if compared(name) is not None]
        operator = found["op"].lower()
        is_naming = operator in ("as", "values")
        for row in re.findall(r"\(([^()]*)\)?", found["rows"]) if columns else ():
            cells = [cell.strip() for cell in row.split(",")]
            places = range(len(cells)) if len(header) == 1 else columns
            for cell in (cells[at] for at in places if at < len(cells)):
                if re.fullmatch(_LITERAL, cell) and (is_naming or operator in _EXACT):
                    yield cell[1:-1]
                elif not is_naming or "'" in cell:
                    yield ANY_PRODUCT


def _is_word(header: list[str]) -> bool:
    return len(header) == 1 and re.fullmatch(r"\s*[\w.-]+\s*", header[0]) is not None


def _of_nodes(text: str) -> Iterator[str]:
    nodes = (node for node in _NODE.finditer(text) if compared(node["label"]) is not None)
    for number, node in enumerate(nodes):
        if number == _MOST_NODES:  # each costs a look at the whole text
            yield ANY_PRODUCT
            return
        conditions = [*_FIELD.finditer(node["fields"] or "")]
        if variable := node["variable"]:
            own = re.compile(rf"\b{re.escape(variable)}\.`?")
            conditions += [
                found
                for at in own.finditer(text)
                if (found := _FIELD.match(text, at.end())) is not None
            ]
        yield from _of_conditions(conditions)
    for called in _CALLED.finditer(text):
        if compared(called["label"]) is not None:
            yield from _of_conditions([*_FIELD.finditer(called["fields"])])


def _of_conditions(conditions: list[re.Match[str]]) -> Iterator[str]:
    if not conditions:
        yield ANY_PRODUCT
    for found in conditions:
        values = [each[0][1:-1] for each in _LITERALS.finditer(found["values"] or "")]
        is_read = bool(values) and found["op"].lower() in _EXACT
        yield from values if is_read else [ANY_PRODUCT]


def _of_steps(text: str) -> Iterator[str]:
    for step in _HAS.finditer(text):
        if compared(step["key"][1:-1]) is None:
            continue
        values = [each[0][1:-1] for each in _LITERALS.finditer(step["rest"])]
        named = [each for each in values if each not in ("name", "id", "key")]
        is_read = bool(named) and not re.search(
            r"\b(?:neq|without|not|TextP|regex)\b", step["rest"]
        )
        yield from named if is_read else [ANY_PRODUCT]


def _of_pods(text: str) -> Iterator[str]:
    for replica in _REPLICA.finditer(text):
        yield workload_of(replica[0])
    for path in _POD_PATH.finditer(text):
        yield pod_owner(path["pod"])
    for found in _POD_CONDITION.finditer(text):
        yield from _of_pod_condition(found["op"], found["value"].strip("\"'"))
    for command in _KUBECTL.finditer(text):
        words = command[0].split()
        for before, word in pairwise(words):
            is_value = before.startswith("-") and "=" not in before
            if not word.startswith("-") and not is_value and pod_owner(word) != word:
                yield pod_owner(word)


def _of_pod_condition(operator: str, value: str) -> Iterator[str]:
    """Of a pattern also `*` unless it matches one workload's pods alone: `web-.*` matches `web-admin-0`."""
    if operator != "=~":
        yield pod_owner(value)
        return
    for pattern in _OWN_TAIL.sub("-0", value).split("|"):
        name = pattern.removeprefix("^").removesuffix("$")
        if re.fullmatch(r"[A-Za-z0-9-]+", name):
            yield pod_owner(name)
        elif not _ANY_POD.fullmatch(pattern):
            begin = re.match(r"\(?([A-Za-z0-9-]*[A-Za-z0-9])-(?=\W|\Z)", name)
            yield from (begin[1], ANY_PRODUCT) if begin else (ANY_PRODUCT,)
