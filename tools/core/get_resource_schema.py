"""core__get_resource_schema: the fields of a kind, a few levels at a time."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from tools.capabilities import CallContext, Capabilities
from tools.contract import QUERY, Effect, ToolContract, ToolInput, ToolOutput
from tools.core.bound import bound
from tools.output import clean_text
from tools.products import OF_NO_PRODUCT

MAX_FIELDS = 150
MAX_DESCRIPTION_CHARS = 160
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}")
_API_VERSION = re.compile(r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?v[a-z0-9]{1,30}")


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
    """Reads what the API server says of a kind."""

    contract = ToolContract(
        id="core__get_resource_schema",
        description=(
            "The fields of a Kubernetes kind, two levels at a time. Use to"
            " write or judge a manifest; go deeper with `field`."
        ),
        input=SchemaInput,
        output=SchemaOutput,
        effect=Effect.READ_ONLY,
        redaction=frozenset(SchemaOutput.model_fields),
        timeouts=QUERY,
        capabilities=frozenset({"offer"}),
        products=OF_NO_PRODUCT,
        toolsets=("recommend",),
    )

    async def execute(
        self, arguments: SchemaInput, call: CallContext, caps: Capabilities
    ) -> SchemaOutput:
        del call
        offer = bound(caps.offer, "offer")
        found = await offer.schema(arguments.kind, arguments.api_version, arguments.field)
        cut = len(found.fields) > MAX_FIELDS
        return SchemaOutput(
            kind=found.kind,
            api_version=found.api_version,
            description=clean_text(found.description)[:MAX_DESCRIPTION_CHARS] or None,
            fields=[
                FieldEntry(
                    path=clean_text(one.path),
                    type=clean_text(one.type),
                    required=one.required or None,
                    description=clean_text(one.description)[:MAX_DESCRIPTION_CHARS] or None,
                )
                for one in found.fields[:MAX_FIELDS]
            ],
            truncated=cut,
            notes=["fields of type object may hold more: ask with `field`"] if found.more else None,
        )

    def summarise(self, output: SchemaOutput, arguments: SchemaInput) -> str:
        below = f" {clean_text(arguments.field)}" if arguments.field else ""
        return f"{output.kind}{below}: {len(output.fields)} fields"
