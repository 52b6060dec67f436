"""Foreign JSON Schemas (Draft 2020-12), compiled once, checked in bounded time.

jsonschema does the work. RE2 evaluates patterns in linear time. References stay inside the schema.
"""

import math
from collections.abc import Callable, Container, Iterator, Mapping
from datetime import datetime, time
from functools import lru_cache
from itertools import islice
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import orjson
import re2
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend
from pydantic import JsonValue
from referencing import Registry

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
MAX_PROBLEMS: Final = 5
MAX_WORDS: Final = 300  # characters of one problem
MAX_DEPTH: Final = 32  # of a schema or a value
MAX_SCHEMA_NODES: Final = 20_000
MAX_NODES: Final = 2_000
MAX_CHARS: Final = 262_144
MAX_SUBSCHEMAS: Final = 1_000  # with every reference written out
_64_BITS: Final = range(-(2**63), 2**64)

_BY_NAME: Final = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_LISTED: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE: Final = (
    "items", "contains", "additionalProperties", "unevaluatedProperties", "unevaluatedItems",
    "propertyNames", "not", "if", "then", "else",
)  # fmt: skip
_HOLDERS: Final = frozenset((*_BY_NAME, *_LISTED, *_SINGLE))
_APPLIED: Final = _HOLDERS - {"$defs", "definitions"}
# The library evaluates the patterns of the second with `re` when it checks the first.
_BY_PATTERN: Final = {"unevaluatedProperties", "patternProperties"}
_REFUSED: Final = ("$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$vocabulary")
_FAILS_AS_A_WHOLE: Final = {
    "anyOf": "fits none of the alternatives",
    "oneOf": "does not fit exactly one of the alternatives",
    "not": "is what the schema excludes",
    "contains": "does not contain the items it must",
    "uniqueItems": "contains an item twice",
    "additionalProperties": "contains a name that is not declared",
    "unevaluatedProperties": "contains a name that is not declared",
    "unevaluatedItems": "contains more items than are declared",
    "propertyNames": "contains a name that is not allowed",
}


class SchemaInvalid(ValueError):
    """The schema is not one, or Kortex cannot check it safely."""


class JsonSchema:
    """A compiled schema. Safe to share between threads."""

    __slots__ = ("_names", "_validator")

    def __init__(self, schema: Mapping[str, JsonValue]) -> None:
        """Raises SchemaInvalid, with the place in the schema."""
        if (size := _out_of_bounds(schema, MAX_SCHEMA_NODES)) is not None:
            raise SchemaInvalid(size)
        root = dict(schema)
        if root.pop("$schema", DIALECT) != DIALECT:
            raise SchemaInvalid("$schema: only Draft 2020-12 is supported")
        try:
            Draft202012Validator.check_schema(root, format_checker=FormatChecker(()))
        except SchemaError as error:
            where = "".join(f"{part}: " for part in error.absolute_path)
            raise SchemaInvalid(f"{where}{error.message}"[:MAX_WORDS]) from None
        except RecursionError:
            raise SchemaInvalid("nested too deep") from None
        subschemas = dict(_subschemas(root, "#"))
        references = _References(subschemas)
        for where, each in subschemas.items():
            _check_supported(each, where)
            references.size(where)
        if {keyword for each in subschemas.values() for keyword in each} >= _BY_PATTERN:
            raise SchemaInvalid(f"{' and '.join(sorted(_BY_PATTERN))} exclude each other here")
        self._names = {name for each in subschemas.values() for name in each.get("properties", {})}
        self._validator = _LinearValidator(root, registry=Registry(), format_checker=_FORMATS)

    def problems(self, value: object) -> list[str]:
        """The first `MAX_PROBLEMS` rules that the value breaks, without anything of the value.

        Empty when it fits. A name is repeated only if the schema declares it.
        """
        if (size := _out_of_bounds(value, MAX_NODES)) is not None:
            return [size]
        try:
            errors = islice(self._validator.iter_errors(value), MAX_PROBLEMS)
            return list(dict.fromkeys(self._in_words(error) for error in errors))
        except RecursionError:
            return ["nested too deep"]

    def _in_words(self, error: ValidationError) -> str:
        steps = (
            str(step) if isinstance(step, int) or step in self._names else "?"
            for step in error.absolute_path
        )
        where = ".".join(steps)
        return f"{where + ': ' if where else ''}{_broken_rule(error)}"[:MAX_WORDS]


def _broken_rule(error: ValidationError) -> str:
    rule: Any = error.validator
    limit: Any = error.validator_value
    if rule == "required" and isinstance(error.instance, dict):
        missing = [name for name in limit if name not in error.instance]
        return f"required: {', '.join(missing)}"
    if rule == "type":
        return f"must be of type {' or '.join(limit) if isinstance(limit, list) else limit}"
    if (words := _FAILS_AS_A_WHOLE.get(str(rule))) is not None:
        return words
    if rule is None:
        return "is not allowed"
    return f"must satisfy {rule} {orjson.dumps(limit).decode()}"


def _out_of_bounds(document: object, max_nodes: int) -> str | None:
    nodes = chars = 0
    pending: list[tuple[object, int]] = [(document, 0)]
    while pending:
        each, depth = pending.pop()
        if isinstance(each, Mapping):
            pending += [(part, depth + 1) for pair in each.items() for part in pair]
        elif isinstance(each, list):
            pending += [(part, depth + 1) for part in each]
        elif (flaw := _flaw(each)) is not None:
            return flaw
        nodes += 1
        chars += len(each) if isinstance(each, str) else 0
        if depth > MAX_DEPTH:
            return f"nested deeper than {MAX_DEPTH} levels"
        if nodes + len(pending) > max_nodes or chars > MAX_CHARS:
            return f"larger than {max_nodes} values or {MAX_CHARS} characters"
    return None


def _flaw(value: object) -> str | None:
    match value:
        case str():
            try:
                value.encode()
            except UnicodeEncodeError:  # a lone surrogate
                return "a text is not valid Unicode"
        case None | bool():
            pass
        case int() if value not in _64_BITS:
            return "a number does not fit 64 bits"
        case float() if not math.isfinite(value):
            return "a number is not finite"
        case int() | float():
            pass
        case _:
            return "not JSON"
    return None


def _parts(schema: Mapping[str, Any], keywords: Container[str]) -> Iterator[tuple[str, Any]]:
    for keyword, held in schema.items():
        if keyword not in keywords:
            continue
        if keyword in _BY_NAME:
            for name, each in held.items():
                yield f"{keyword}/{name.replace('~', '~0').replace('/', '~1')}", each
        elif keyword in _LISTED:
            yield from ((f"{keyword}/{number}", each) for number, each in enumerate(held))
        else:
            yield keyword, held


def _subschemas(schema: Mapping[str, Any], where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield where, schema
    for step, each in _parts(schema, _HOLDERS):
        if isinstance(each, dict):
            yield from _subschemas(each, f"{where}/{step}")


def _check_supported(schema: Mapping[str, Any], where: str) -> None:
    for keyword in _REFUSED:
        if keyword in schema:
            raise SchemaInvalid(f"{where}: {keyword} is not supported")
    if "$schema" in schema:
        raise SchemaInvalid(f"{where}: $schema is only supported at the top")
    if schema.get("format") in _UNCHECKED:
        raise SchemaInvalid(f"{where}: the format {schema['format']} is not checked; use pattern")
    patterns = schema.get("patternProperties", {})
    for pattern in (*patterns, *([schema["pattern"]] if "pattern" in schema else ())):
        try:
            _regex(pattern)
        except re2.error:
            why = "RE2 cannot evaluate this pattern; look-around and back-references are not supported"
            raise SchemaInvalid(f"{where}: {why}: {pattern}"[:MAX_WORDS]) from None


class _References:
    """Refuses references out of the schema, in a circle, or that multiply it without bound."""

    def __init__(self, subschemas: Mapping[str, Mapping[str, Any]]) -> None:
        self._subschemas = subschemas
        self._sizes: dict[str, int] = {}

    def size(self, where: str, inside: tuple[str, ...] = ()) -> int:
        if where in inside:
            raise SchemaInvalid(f"{where}: refers to itself")
        if len(inside) > MAX_DEPTH:
            raise SchemaInvalid(f"{where}: nested deeper than {MAX_DEPTH} levels")
        if (known := self._sizes.get(where)) is not None:
            return known
        size = 1 + sum(self.size(each, (*inside, where)) for each in self._applied(where))
        if size > MAX_SUBSCHEMAS:
            raise SchemaInvalid(f"{where}: references multiply it beyond {MAX_SUBSCHEMAS} parts")
        self._sizes[where] = size
        return size

    def _applied(self, where: str) -> Iterator[str]:
        schema = self._subschemas[where]
        for step, each in _parts(schema, _APPLIED):
            if isinstance(each, dict):
                yield f"{where}/{step}"
        if "$ref" in schema:
            target = unquote(schema["$ref"])
            if target not in self._subschemas:
                raise SchemaInvalid(f"{where}: $ref leads to no schema of this document")
            yield target


@lru_cache(maxsize=1_024)
def _regex(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


# Keyword functions as jsonschema's `extend` takes them: validator, keyword's value, instance, schema.
_Errors = Iterator[ValidationError]


def _pattern(validator: Any, pattern: str, instance: Any, _schema: object) -> _Errors:
    if validator.is_type(instance, "string") and not _regex(pattern).search(instance):
        yield ValidationError("pattern")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, _schema: object
) -> _Errors:
    if validator.is_type(instance, "object"):
        for pattern, schema in patterns.items():
            for name in filter(_regex(pattern).search, instance):
                yield from validator.descend(instance[name], schema, name, pattern)


def _additional_properties(
    validator: Any, rule: Any, instance: Any, schema: Mapping[str, Any]
) -> _Errors:
    if not validator.is_type(instance, "object"):
        return
    declared, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name in instance:
        if name in declared or any(_regex(each).search(name) for each in patterns):
            continue
        if rule is False:
            yield ValidationError("additionalProperties")
            return
        yield from validator.descend(instance[name], rule, name)


def _unique_items(validator: Any, unique: bool, instance: Any, _schema: object) -> _Errors:
    if not (unique and validator.is_type(instance, "array")):
        return
    if len({_hashable(each) for each in instance}) < len(instance):
        yield ValidationError("uniqueItems")


def _hashable(value: Any) -> object:
    if isinstance(value, dict):
        return frozenset((name, _hashable(each)) for name, each in value.items())
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    return (bool, value) if isinstance(value, bool) else value


_LinearValidator: Any = extend(  # type: ignore[no-untyped-call] # of types-jsonschema
    Draft202012Validator,
    {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    },
)

_DATE: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME: Final = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})"
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_DURATION: Final = (
    r"P(?:[0-9]+W|(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+D)?"
    r"(?:T(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+S)?)?)"
)


def _formats() -> FormatChecker:
    checker = FormatChecker(("date", "ipv4", "ipv6", "uuid"))

    def by(name: str, is_valid: Callable[[str], object]) -> None:
        def check(instance: object) -> bool:
            return not isinstance(instance, str) or bool(is_valid(instance))

        checker.checks(name, raises=ValueError)(check)

    def full(pattern: str, text: str) -> bool:
        return _regex(pattern).fullmatch(text) is not None

    by(
        "date-time",
        lambda text: (
            full(f"{_DATE}T{_TIME}", text.upper()) and datetime.fromisoformat(text.upper())
        ),
    )
    by("time", lambda text: full(_TIME, text.upper()) and time.fromisoformat(text.upper()))
    by("duration", lambda text: full(_DURATION, text) and not text.endswith(("P", "T")))
    by("email", lambda text: full(r"[^@\s]+@[^@\s]+", text))
    by("hostname", lambda text: full(rf"{_LABEL}(?:\.{_LABEL})*", text) and len(text) <= 253)
    by("uri", lambda text: full(_URI, text) and urlsplit(text))
    return checker


_URI: Final = r"[A-Za-z][A-Za-z0-9+.-]*:[!#-;=?-Z\[\]_a-z~]*"
_FORMATS: Final = _formats()
# Further standard formats would need more packages. An unknown format is only an annotation.
_UNCHECKED: Final = frozenset(
    {
        "idn-email", "idn-hostname", "iri", "iri-reference", "json-pointer", "regex",
        "relative-json-pointer", "uri-reference", "uri-template",
    }
)  # fmt: skip
