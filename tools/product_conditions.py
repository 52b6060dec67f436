"""Conditions in a query text that compare a product's key: `service="web"`, `app in ("web", api)`.

Each function yields the product, or `*` for what cannot be read.
"""

import re
from collections.abc import Iterator
from typing import Final

from tools.product_keys import ANYTHING, EXACT, INEXACT, NAMES, RUNNERS, plain_key, run_by
from tools.product_names import ANY_PRODUCT

# Words that begin a sentence rather than name a product: "the app: is it down?".
_PROSE: Final = frozenset(
    {"a", "an", "and", "any", "are", "as", "at", "but", "by", "can", "could", "did", "do", "does", "for",
     "from", "has", "have", "how", "i", "if", "in", "is", "it", "its", "no", "not", "of", "on", "or", "our",
     "please", "since", "so", "that", "the", "there", "they", "this", "to", "was", "we", "were", "what",
     "when", "where", "which", "who", "why", "will", "with", "you"}
)  # fmt: skip
_QUOTED: Final = r"\([^()]*\)|\[[^\[\]]*\]|\"[^\"]*\"|'[^']*'|`[^`]*`"
# `service="web"`, `service.name:web`, `app in ("web", api)`, `lower(service) != web` within a text.
# After a word only quoted or bracketed values count: plain sentences hold such words as well.
_CONDITION: Final = re.compile(
    rf"(?<![A-Za-z0-9])(?P<name>{NAMES})(?:\.keyword)?(?:[\"'`]?\]|[\"'`]|\[\w*\])?(?P<closed>(?:\s+as\s+\w+)?\s?\))?\s*"
    rf"(?:(?P<op>=~|!=|!~|<>|==?|:|[<>]=?|~\*?)(?P<gap>\s*)(?P<value>{_QUOTED}|[^\s,;&|(){{}}\[\]\"']*)"
    r"|(?<=[\s\"'`\])])(?P<word>(?:not\s+)?(?:in|eq|ne|in~|!in~?|when|has_any|has_all|like|ilike|is|has|contains|rlike|regexp|startswith|endswith|"
    rf"matches|between|similar\s+to)(?!\w))\s*(?P<listed>{_QUOTED}|[(\[]))",
    re.IGNORECASE,
)
_REVERSED: Final = re.compile(
    rf"(?P<value>\"[^\"]*\"|'[^']*')\s*(?P<op>!=|<>|==?|~)\s*(?:\w{{1,40}}\.)?(?:{NAMES})\b(?!\s*[=:.(~])",
    re.IGNORECASE,
)
_ALIAS: Final = re.compile(
    rf"(?<!cast\()(?<![A-Za-z0-9])(?:{NAMES})[\"'`\]]?\s+as\s+[\"'`\[]?(\w+)", re.IGNORECASE
)
# `('service', 'web')`, `equals(service, "web")`, and `'web' as service`.
_PAIR: Final = re.compile(
    rf"(?:\b(?P<function>\w+)\s?)?\(\s*[\"'`]?(?:\w{{1,40}}\.)?(?:{NAMES})[\"'`]?\s*,\s*"
    rf"(?:[\"'](?P<op>[^\"'\s]{{1,12}})[\"']\s*,\s*)?(?P<value>\"[^\"]*\"|'[^']*')\s*+(?:,\s*+)?\)"
    rf"|(?P<named>\"[^\"]*\"|'[^']*')\s+as\s+[\"'`\[]?(?:{NAMES})\b",
    re.IGNORECASE,
)
_COMPARISONS: Final = EXACT | INEXACT | {
    "strpos", "instr", "position", "nullif", "starts_with", "ends_with", "filter", "where", "label", "tag"
}  # fmt: skip
_OPTION: Final = re.compile(rf"(?<!\S)--?(?:{NAMES})\s+(?P<value>[^\s-]\S*)", re.IGNORECASE)
# `service|web`, `svc/web`, `service -> web`, `service "web"`: a whole text of a key and its value.
_TWO_WORDS: Final = re.compile(
    rf"\s*(?:(?:{NAMES})\s*(?:[|#@~;\t(\[]|->|=>|\s(?=[\"'`]))|(?:services?|svc|deployments?)/)"
    r"\s*[\"'`]?(?P<value>[\w.*-]+)[\"'`]?\s*[)\]]?\s*",
    re.IGNORECASE,
)
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
_BEFORE_CHARS: Final = 64
_QUOTES: Final = "\"'`() []"


def plain_query(text: str) -> str:
    """A query without comments, with `service` for each other name of it: `service as s … s = 'web'`."""
    text = _COMMENT.sub(" ", text)
    names = {found[1] for found in _ALIAS.finditer(text)}
    return re.sub(r"\w+", lambda each: "service" if each[0] in names else each[0], text)


def named_in_text(text: str) -> Iterator[str]:
    """The products that the text compares a key with."""
    for found in _CONDITION.finditer(text):
        before = text[max(0, found.start() - _BEFORE_CHARS) : found.start()]
        operator = found["op"] or found["word"]
        if found["closed"] and not (found["value"] or found["listed"] or "").startswith(("'", '"')):
            continue
        if operator == ":" and found["gap"] and found["value"].lower() in _PROSE:
            continue
        if plain_key(found["name"]) in RUNNERS:
            yield from _of_runner(
                operator, found["value"] or found["listed"] or "", found["gap"] or ""
            )
            continue
        if (
            _NEGATED.search(before)
            or operator.strip().lower() not in EXACT
            or _JOINED.match(text, found.end())
        ):
            yield ANY_PRODUCT
        elif operator != ":" or not _OTHER_WORD.search(before) or _SCOPE.search(before):
            yield from _listed(found["value"] or found["listed"] or "")
    for found in _REVERSED.finditer(text):
        yield from _listed(found["value"]) if found["op"] in EXACT else [ANY_PRODUCT]
    yield from _of_pairs(text)
    for found in _OPTION.finditer(text):
        yield from _listed(found["value"])
    if whole := _TWO_WORDS.fullmatch(text):
        yield whole["value"]


def _of_pairs(text: str) -> Iterator[str]:
    for found in _PAIR.finditer(text):
        if found["named"]:
            yield from _listed(found["named"])
        elif (function := (found["function"] or "").lower()) in _COMPARISONS:
            is_exact = {function, found["op"] or ""} <= EXACT | {"filter", "where", "label", "tag"}
            yield from _listed(found["value"]) if is_exact else [ANY_PRODUCT]


def _of_runner(operator: str, value: str, gap: str) -> Iterator[str]:
    """A job that is compared with anything at all narrows nothing: other conditions do."""
    if value.strip(_QUOTES) in ANYTHING or (operator == ":" and gap):
        return
    if operator.strip().lower() not in EXACT:
        yield ANY_PRODUCT
    else:
        yield from map(run_by, _listed(value))


def _listed(values: str) -> Iterator[str]:
    for each in re.split(r",|\s+or\s+", values, flags=re.IGNORECASE):
        yield each.strip(_QUOTES) or ANY_PRODUCT
