"""A manifest as a tool: its arguments' schema, its one confined request, its answer as data.

Arguments are put into the URL, query or body so that they can point nowhere else.
"""

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode, urlsplit, urlunsplit

import httpx
import orjson
from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError, create_model

from adapters.errors import AdapterError, Unreachable
from adapters.http.body import read_capped
from adapters.http.client import reach
from adapters.http.errors import mapped_errors
from adapters.plugins.manifest import CEILING_S, PREFIX, Endpoint, Manifest, ReadManifest, hole
from adapters.plugins.parameters import fields_of
from adapters.plugins.yaml_source import ManifestInvalid
from tools.capabilities import CallContext, Capabilities
from tools.catalog import CatalogInvalid, checked_contract
from tools.contract import Effect, Timeouts, ToolContract, ToolInput, ToolOutput
from tools.errors import CapabilityUnavailable, InvalidArguments, UpstreamFailed
from tools.output import NotStrictJson, clean_text, clean_value
from tools.products import FOREIGN_QUERY, ProductScope, usual_scope

MAX_BYTES: Final = 512 * 1024  # decompressed; the runner then cuts to what a model is given
_MAX_TEXT_CHARS: Final = 16_000
_MAX_WORDS: Final = 300

_HOLE: Final = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_SEPARATORS: Final = re.compile(r"[/\\]")


class PluginOutput(ToolOutput):
    """`data` is the answer's JSON; another answer is in `text`, with a note."""

    data: JsonValue = None
    text: str | None = None
    note: str | None = None


class PluginTool:
    """Asks the declared endpoint. The caller owns the client, which carries the credentials."""

    def __init__(self, read: ReadManifest, client: httpx.AsyncClient) -> None:
        self.manifest = read.manifest
        self.contract = contract_of(read)
        self._client = client

    async def execute(
        self, arguments: BaseModel, call: CallContext, caps: Capabilities
    ) -> PluginOutput:
        del call, caps
        given: dict[str, JsonValue] = arguments.model_dump(exclude_none=True)
        url, body = placed(self.manifest.endpoint, given)
        try:
            with mapped_errors(f"plugin {self.manifest.name}"):
                status, answer = await self._ask(url, body)
        except Unreachable as error:
            raise CapabilityUnavailable(error.message) from error
        except AdapterError as error:
            raise UpstreamFailed(error.message, error.status) from error
        if 300 <= status < 400:
            raise UpstreamFailed("answered a redirect, which plugins do not follow", status)
        if not 200 <= status < 300:
            words = " ".join(answer.decode("utf-8", "replace").split())[:_MAX_WORDS]
            raise UpstreamFailed(words or "no explanation", status)
        return _output(answer)

    def summarise(self, output: PluginOutput, arguments: BaseModel) -> str:
        del arguments
        if isinstance(output.data, list):
            return f"{len(output.data)} results"
        if isinstance(output.data, dict):
            return f"{len(output.data)} fields"
        return "an answer"

    async def reach(self) -> None:
        """Whether the address responds, with any answer. Sends no question, changes nothing.

        Raises AdapterError.
        """
        await reach(self._client, self.manifest.endpoint.url, f"plugin {self.manifest.name}")

    async def _ask(self, url: str, body: JsonValue) -> tuple[int, bytes]:
        request = self._client.build_request(
            self.manifest.endpoint.method,
            url,
            headers={"Accept": "application/json"},
            json=body,
        )
        response = await self._client.send(request, stream=True)
        try:
            return response.status_code, await read_capped(response, MAX_BYTES)
        finally:
            await response.aclose()


def _output(answer: bytes) -> PluginOutput:
    text = answer.decode("utf-8", "replace")
    try:
        return PluginOutput(data=clean_value(orjson.loads(answer)))
    except orjson.JSONDecodeError:
        cut = clean_text(text[:_MAX_TEXT_CHARS])
        more = ", cut" if len(text) > _MAX_TEXT_CHARS else ""
        return PluginOutput(text=cut, note=f"not JSON: {len(answer)} bytes of text{more}")
    except NotStrictJson as error:
        raise UpstreamFailed(f"the answer's JSON cannot be used: {error}") from error


def contract_of(read: ReadManifest) -> ToolContract:
    """Raises ManifestInvalid for a declaration that no catalog would take."""
    manifest = read.manifest
    contract = ToolContract(
        id=f"{PREFIX}{manifest.name}",
        description=clean_text(" ".join(manifest.description.split())),
        input=_input_model(read),
        output=PluginOutput,
        effect=Effect.READ_ONLY,
        redaction=_allowlist(manifest),
        timeouts=Timeouts(manifest.timeout.total_seconds(), CEILING_S),
        capabilities=frozenset(),
        products=_scope(manifest),
    )
    try:
        checked_contract(contract)
    except CatalogInvalid as error:
        raise read.source.invalid(str(error)) from error
    return contract


def _scope(manifest: Manifest) -> ProductScope:
    """As declared, else by what the parameters are called."""
    if manifest.products is None:
        free = any(p.type == "object" and not p.properties for p in manifest.parameters.values())
        # A model's own query may name any product, in spite of other arguments.
        return FOREIGN_QUERY if free else usual_scope(manifest.parameters)
    declared = manifest.products
    return ProductScope(declared, is_free=not declared, checks_every_value=bool(declared))


def _allowlist(manifest: Manifest) -> frozenset[str]:
    """`issues[].key` of the answer is `data.issues[].key` of the result."""
    paths = [f"data{'' if each.startswith('[]') else '.'}{each}" for each in manifest.fields]
    return frozenset({*(paths or ["data"]), "text", "note"})


def _input_model(read: ReadManifest) -> type[BaseModel]:
    def refuse(why: str, path: tuple[str, ...]) -> ManifestInvalid:
        return read.source.invalid(why, "parameters", *path)

    parameters = read.manifest.parameters
    fields = fields_of(parameters, refuse)
    for name, parameter in parameters.items():
        for key in ("default", "example"):
            value = getattr(parameter, key)
            if value is not None:
                _check_fits(read, fields[name][0], value, name, key)
    title = "".join(word.title() for word in read.manifest.name.split("_"))
    return create_model(f"{title}Input", __base__=ToolInput, **fields)


def _check_fits(read: ReadManifest, kind: Any, value: JsonValue, name: str, key: str) -> None:
    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        what = error.errors(include_url=False, include_input=False)[0]["msg"]
        raise read.source.invalid(what, "parameters", name, key) from None


def placed(endpoint: Endpoint, arguments: Mapping[str, JsonValue]) -> tuple[str, JsonValue]:
    """The URL and the JSON body; what neither places goes to the query, or to a POST's body.

    Raises InvalidArguments for a value that would leave its place in the path.
    """
    parts = urlsplit(endpoint.url)
    known = endpoint.holes | endpoint.body_holes
    rest = {name: value for name, value in arguments.items() if name not in known}
    query = _HOLE.sub(lambda hole: _encoded(arguments.get(hole[1], "")), parts.query)
    if endpoint.method == "GET" and rest:
        more = urlencode({name: _text(value) for name, value in rest.items()}, quote_via=quote)
        query = f"{query}&{more}" if query else more
    path = _HOLE.sub(lambda hole: _segment(hole[1], arguments), parts.path)
    if any(_climbs(segment) for segment in path.split("/")):
        raise InvalidArguments("arguments: they would leave the path of this tool")
    url = urlunsplit((parts.scheme, parts.netloc, path, query, ""))
    return url, (_body(endpoint.body, arguments, rest) if endpoint.method == "POST" else None)


class _Left(Enum):
    OUT = "out"


def _body(
    template: JsonValue, arguments: Mapping[str, JsonValue], rest: Mapping[str, JsonValue]
) -> JsonValue:
    if template is None:
        return dict(rest)
    made = _filled(template, arguments)
    if made is _Left.OUT:
        return dict(rest)
    return {**rest, **made} if isinstance(made, dict) else made


def _filled(template: JsonValue, arguments: Mapping[str, JsonValue]) -> JsonValue | _Left:
    if name := hole(template):
        return arguments.get(name, _Left.OUT)
    if isinstance(template, dict):
        made = {key: _filled(value, arguments) for key, value in template.items()}
        return {key: value for key, value in made.items() if not isinstance(value, _Left)}
    if isinstance(template, list):
        each = [_filled(value, arguments) for value in template]
        return [value for value in each if not isinstance(value, _Left)]
    return template


def _segment(name: str, arguments: Mapping[str, JsonValue]) -> str:
    value = _encoded(arguments.get(name, ""))
    if not value:
        raise InvalidArguments(f"{name}: may not be empty")
    return value


def _climbs(segment: str) -> bool:
    """Also for a server that decodes before it routes."""
    return any(step in (".", "..") for step in _SEPARATORS.split(unquote(segment)))


def _encoded(value: JsonValue) -> str:
    try:
        return quote(_text(value), safe="")
    except UnicodeEncodeError as error:
        raise InvalidArguments("arguments: half a character cannot be in a URL") from error


def _text(value: JsonValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
