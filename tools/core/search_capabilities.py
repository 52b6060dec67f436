"""core__search_capabilities: which kinds of the cluster fit an intent, its own and those of operators."""

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from tools.capabilities import CallContext, Capabilities
from tools.cluster_offer import OfferedKind
from tools.contract import QUERY, Effect, ToolContract, ToolInput, ToolOutput
from tools.core.bound import bound
from tools.errors import InvalidArguments
from tools.output import clean_text
from tools.products import OF_NO_PRODUCT
from tools.search_words import weight, words_of

MAX_DESCRIPTION_CHARS = 200
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


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
    contract = ToolContract(
        id="core__search_capabilities",
        description=(
            "Kubernetes kinds, custom ones included, that fit an intent ('postgres', 'autoscale')."
            " Use before recommending how to run something; broad words first."
        ),
        input=CapabilitiesInput,
        output=CapabilitiesOutput,
        effect=Effect.READ_ONLY,
        redaction=frozenset(CapabilitiesOutput.model_fields),
        timeouts=QUERY,
        capabilities=frozenset({"offer"}),
        products=OF_NO_PRODUCT,
        toolsets=("recommend",),
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
                CapabilityEntry(
                    kind=clean_text(one.kind),
                    api_version=clean_text(one.api_version),
                    namespaced=one.namespaced,
                    description=clean_text(one.description)[:MAX_DESCRIPTION_CHARS] or None,
                )
                for one in found[: arguments.limit]
            ],
            total_matches=len(found),
            notes=None if found else [nothing],
        )

    def summarise(self, output: CapabilitiesOutput, arguments: CapabilitiesInput) -> str:
        number = output.total_matches
        noun = "kind" if number == 1 else "kinds"
        return f'{number or "no"} {noun} for "{clean_text(arguments.query)[:60]}"'


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
