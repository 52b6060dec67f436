"""The tools for what a cluster offers: the kinds that fit an intent, and the fields of one kind."""

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from tools.capabilities import CallContext, Capabilities
from tools.cluster_offer import OfferedKind
from tools.contract import ToolInput, ToolOutput
from tools.core.built_in import bound, counted, entry_of, read_only
from tools.errors import InvalidArguments
from tools.output import clean_text
from tools.products import OF_NO_PRODUCT
from tools.search_words import weight, words_of

MAX_KIND_CHARS = 200  # of a description
MAX_FIELDS = 150
MAX_FIELD_CHARS = 160
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}")
_API_VERSION = re.compile(r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?v[a-z0-9]{1,30}")


class CapabilitiesInput(ToolInput):
    query: Annotated[
        str, Field(min_length=1, max_length=500, description="Words: intent, kind or operator")
    ]
    limit: Annotated[int, Field(ge=1, le=50)] = 10


class CapabilityEntry(ToolOutput):
    kind: str
    api_version: str
    namespaced: bool
    description: str | None = None


class CapabilitiesOutput(ToolOutput):
    """The best first."""

    capabilities: list[CapabilityEntry]
    total_matches: int
    notes: list[str] | None = None


class SearchCapabilities:
    contract = read_only(
        "search_capabilities",
        "Kubernetes kinds, custom ones included, that fit an intent ('postgres', 'autoscale')."
        " Use before recommending how to run something; broad words first.",
        (CapabilitiesInput, CapabilitiesOutput),
        "offer",
        OF_NO_PRODUCT,
        "recommend",
    )

    async def execute(
        self, arguments: CapabilitiesInput, call: CallContext, caps: Capabilities
    ) -> CapabilitiesOutput:
        del call
        asked = words_of(arguments.query)
        if not asked:
            raise InvalidArguments("query: name words of the intent, e.g. 'postgres database'")
        kinds = await bound(caps.offer, "offer").kinds()
        found = ranked(asked, kinds)
        nothing = f"none of {len(kinds)} kinds fits; try other words"
        return CapabilitiesOutput(
            capabilities=[
                entry_of(CapabilityEntry, one, description=_cut(one.description, MAX_KIND_CHARS))
                for one in found[: arguments.limit]
            ],
            total_matches=len(found),
            notes=None if found else [nothing],
        )

    def summarise(self, output: CapabilitiesOutput, arguments: CapabilitiesInput) -> str:
        return f'{counted(output.total_matches, "kind")} for "{_cut(arguments.query, 60)}"'


def ranked(asked: Sequence[str], kinds: Sequence[OfferedKind]) -> list[OfferedKind]:
    """Kinds that hold one of the words; rare words and words of the name count more."""
    named = [set(_name_words(one)) for one in kinds]
    held = [names | set(words_of(one.description)) for names, one in zip(named, kinds, strict=True)]
    counts = {word: sum(word in words for words in held) for word in asked}
    scored = [
        (weight(counts, words, names), one)
        for words, names, one in zip(held, named, kinds, strict=True)
    ]
    scored.sort(key=lambda pair: (-pair[0], pair[1].kind, pair[1].api_version))
    return [one for score, one in scored if score > 0]


def _name_words(one: OfferedKind) -> list[str]:
    apart = _CAMEL.sub(" ", one.kind)
    return words_of(
        f"{apart} {one.kind} {one.plural} {' '.join(one.short_names)} {one.api_version}"
    )


def _cut(text: str, most: int) -> str:
    return clean_text(text)[:most]


def _kind(text: str) -> str:
    if _KIND.fullmatch(text) is None:
        raise ValueError("a kind such as 'Deployment'")
    return text


def _api_version(text: str) -> str:
    if _API_VERSION.fullmatch(text) is None or ".." in text:
        raise ValueError("an API version such as 'apps/v1' or 'v1'")
    return text


class SchemaInput(ToolInput):
    kind: Annotated[str, AfterValidator(_kind)]
    api_version: Annotated[str, AfterValidator(_api_version), Field(description="e.g. 'apps/v1'")]
    field: Annotated[
        str,
        Field(max_length=300, description="Show the fields below it, e.g. 'spec.template.spec'"),
    ] = ""


class FieldEntry(ToolOutput):
    path: str
    type: str
    required: bool | None = None
    description: str | None = None


class SchemaOutput(ToolOutput):
    """Two levels of fields."""

    kind: str
    api_version: str
    description: str | None = None
    fields: list[FieldEntry]
    truncated: bool
    notes: list[str] | None = None


class GetResourceSchema:
    contract = read_only(
        "get_resource_schema",
        "The fields of a Kubernetes kind, two levels at a time. Use to"
        " write or judge a manifest; go deeper with `field`.",
        (SchemaInput, SchemaOutput),
        "offer",
        OF_NO_PRODUCT,
        "recommend",
    )

    async def execute(
        self, arguments: SchemaInput, call: CallContext, caps: Capabilities
    ) -> SchemaOutput:
        del call
        offer = bound(caps.offer, "offer")
        found = await offer.schema(arguments.kind, arguments.api_version, arguments.field)
        return SchemaOutput(
            kind=found.kind,
            api_version=found.api_version,
            description=_cut(found.description, MAX_FIELD_CHARS) or None,
            fields=[
                entry_of(
                    FieldEntry,
                    one,
                    required=one.required or None,
                    description=_cut(one.description, MAX_FIELD_CHARS),
                )
                for one in found.fields[:MAX_FIELDS]
            ],
            truncated=len(found.fields) > MAX_FIELDS,
            notes=["fields of type object may hold more: ask with `field`"] if found.more else None,
        )

    def summarise(self, output: SchemaOutput, arguments: SchemaInput) -> str:
        below = f" {clean_text(arguments.field)}" if arguments.field else ""
        return f"{output.kind}{below}: {len(output.fields)} fields"
