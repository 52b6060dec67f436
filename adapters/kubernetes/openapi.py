"""The fields of a kind, read from an API server's OpenAPI v3 document of its group."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from tools.cluster_offer import ResourceSchema, SchemaField
from tools.errors import InvalidArguments

LEVELS: Final = 2
_REFERENCE: Final = "#/components/schemas/"
_KINDS: Final = "x-kubernetes-group-version-kind"
# The same for every kind, so worth no room.
_EVERYWHERE: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
Schema = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class _Walk:
    schemas: Schema

    def resolved(self, schema: JsonValue) -> Schema:
        """Follow a reference, also the one in a single `allOf`; sibling keys win."""
        own = schema if isinstance(schema, dict) else {}
        parts = own.get("allOf")
        target = parts[0] if isinstance(parts, list) and len(parts) == 1 else own
        name = target.get("$ref") if isinstance(target, dict) else None
        if not isinstance(name, str):
            return own
        found = self.schemas.get(name.removeprefix(_REFERENCE))
        return {**(found if isinstance(found, dict) else {}), **own}

    def inside(self, schema: Schema) -> Schema:
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), dict):
                return self.inside(self.resolved(schema[key]))
        return schema

    def children(self, schema: Schema) -> Mapping[str, Schema]:
        properties = self.inside(schema).get("properties")
        if not isinstance(properties, dict):
            return {}
        return {name: self.resolved(one) for name, one in properties.items()}

    def fields(self, schema: Schema, path: str, levels: int) -> Iterator[SchemaField]:
        required = self.inside(schema).get("required")
        names = required if isinstance(required, list) else []
        here = [
            (f"{path}.{name}" if path else name, name, child)
            for name, child in self.children(schema).items()
            if path or name not in _EVERYWHERE
        ]
        for where, name, child in here:
            yield SchemaField(
                where + "[]" * (child.get("type") == "array"),
                self.type_words(child),
                name in names,
                _one_line(child.get("description")),
            )
        if levels > 1:
            for where, _, child in here:
                mark = "[]" if child.get("type") == "array" else ""
                yield from self.fields(child, where + mark, levels - 1)

    def type_words(self, schema: Schema) -> str:
        if schema.get("x-kubernetes-int-or-string") or "oneOf" in schema:
            return "integer or string"
        if isinstance(schema.get("items"), dict):
            return f"list of {self.type_words(self.resolved(schema['items']))}"
        if isinstance(schema.get("additionalProperties"), dict):
            return f"map of {self.type_words(self.resolved(schema['additionalProperties']))}"
        return str(schema.get("type", "object"))


def schema_of(document: Schema, kind: str, api_version: str, below: str) -> ResourceSchema:
    """Two levels of fields. Raises InvalidArguments for a kind or a field that is not there."""
    components = document.get("components")
    schemas = components.get("schemas") if isinstance(components, dict) else None
    walk = _Walk(schemas if isinstance(schemas, dict) else {})
    root = _of_kind(walk.schemas, kind, api_version)
    steps = [step.removesuffix("[]") for step in below.split(".") if step]
    schema, path = _descended(walk, root, steps)
    fields = tuple(walk.fields(schema, path, LEVELS))
    deeper = len(tuple(walk.fields(schema, path, LEVELS + 1))) > len(fields)
    return ResourceSchema(
        kind, api_version, _one_line(schema.get("description")), fields, more=deeper
    )


def _of_kind(schemas: Schema, kind: str, api_version: str) -> Schema:
    group, _, version = api_version.rpartition("/")
    wanted = {"group": group, "version": version, "kind": kind.lower()}
    known: list[str] = []
    for schema in schemas.values():
        marks = schema.get(_KINDS) if isinstance(schema, dict) else None
        for mark in marks if isinstance(marks, list) else ():
            if not isinstance(mark, dict) or not isinstance(schema, dict):
                continue
            name = str(mark.get("kind", ""))
            if {**mark, "kind": name.lower()} == wanted:
                return schema
            if "properties" in schema and not name.endswith("List"):
                known.append(name)
    names = ", ".join(sorted(set(known))[:40]) or "none"
    raise InvalidArguments(f"kind: {api_version} has no {kind}; it has: {names}")


def _descended(walk: _Walk, root: Schema, steps: Sequence[str]) -> tuple[Schema, str]:
    schema, path = root, ""
    for step in steps:
        children = walk.children(schema)
        if step not in children:
            have = ", ".join(sorted(children)[:40]) or "none"
            raise InvalidArguments(f"field: {path or 'the top'} has no {step!r}; it has: {have}")
        schema = children[step]
        mark = "[]" if schema.get("type") == "array" else ""
        path = f"{path}.{step}{mark}" if path else f"{step}{mark}"
    return schema, path


def _one_line(text: JsonValue) -> str:
    return " ".join(text.split()) if isinstance(text, str) else ""
