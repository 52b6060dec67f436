"""The OpenAPI 3.1 document of the API, made from its operations and models."""

import asyncio
import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Any, Final

import orjson
from aiohttp import web
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from bot.web.api import models
from bot.web.api.operations import MAX_BODY_BYTES, Operation

PATH: Final = "/api/v1/openapi.json"
_REF: Final = "#/components/schemas/{model}"
_PATH_PART: Final = re.compile(r"\{(\w+)\}")
_REFUSALS: Final = {
    400: "The request is not valid: what, and where.",
    401: "No live bearer token.",
    403: "You may not.",
    404: "It does not exist, or you may not see it.",
    409: "It is in another state than this needs.",
    408: "The body did not arrive in time.",
    413: f"The body is larger than {MAX_BODY_BYTES} bytes.",
    415: "Send application/json.",
    422: "The text could not be checked for secrets.",
    429: "Too many requests or streams of one caller: Retry-After.",
    503: "The database or a look-up failed; nothing was done: Retry-After.",
}

Json = dict[str, Any]


def document(operations: Sequence[Operation]) -> Json:
    """As it is served; equal for equal operations."""
    schemas = _schemas(operations)
    paths: dict[str, Json] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Kortex",
            "version": version("kortex"),
            "description": "Ask, follow the answer, and decide on proposals: docs/api.md.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"bearer": []}],
    }


def document_route(operations: Sequence[Operation]) -> web.RouteDef:
    """It holds nothing of an installation, and is served to anybody."""

    @cache
    def body() -> bytes:
        return orjson.dumps(document(operations))

    async def handle(_request: web.Request) -> web.Response:
        # Made once; reads the installed version from its files.
        made = await asyncio.to_thread(body)
        return web.Response(body=made, content_type="application/json")

    return web.get(PATH, handle)


def _schemas(operations: Sequence[Operation]) -> Json:
    told = {each.answer for each in operations} | {*models.EVENTS.values(), models.Error}
    given = {each.body for each in operations if each.body is not None}
    wanted: list[Any] = [(model, "serialization") for model in _sorted(told)]
    wanted += [(model, "validation") for model in _sorted(given)]
    _, found = models_json_schema(wanted, ref_template=_REF)
    schemas: Json = found["$defs"]
    schemas.pop("Nothing", None)
    return schemas


def _sorted(found: "set[type[BaseModel]]") -> Sequence[type[BaseModel]]:
    return sorted(found, key=lambda model: model.__name__)


def _operation(operation: Operation) -> Json:
    told: Json = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [*_of_path(operation), *_of_query(operation), *_of_headers(operation)],
        "responses": {str(operation.status): _answer(operation), **_refusals(operation)},
    }
    if operation.body is not None:
        schema = {"$ref": _REF.format(model=operation.body.__name__)}
        told["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema}},
        }
    return told


def _answer(operation: Operation) -> Json:
    content: Json = {}
    if operation.answer is not models.Nothing:
        schema = {"$ref": _REF.format(model=operation.answer.__name__)}
        content["application/json"] = {"schema": schema}
    if operation.streams:
        names = ", ".join(
            f"{kind.value} ({model.__name__})" for kind, model in models.EVENTS.items()
        )
        told = f"Events by name, with JSON data: {names}. Comments keep the connection."
        content["text/event-stream"] = {"schema": {"type": "string", "description": told}}
    return {"description": operation.summary, "content": content}


def _refusals(operation: Operation) -> Json:
    schema = {"application/json": {"schema": {"$ref": _REF.format(model="Error")}}}
    of_body = {408, 413, 415, 422}
    return {
        str(status): {"description": text, "content": schema}
        for status, text in _REFUSALS.items()
        if operation.body is not None or status not in of_body
    }


def _of_path(operation: Operation) -> Sequence[Json]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "pattern": operation.path_patterns[name]},
        }
        for name in _PATH_PART.findall(operation.path)
    ]


def _of_query(operation: Operation) -> Sequence[Json]:
    properties: Json = operation.query.model_json_schema().get("properties", {})
    return [
        {
            "name": name,
            "in": "query",
            "schema": {key: value for key, value in schema.items() if key != "title"},
        }
        for name, schema in properties.items()
    ]


def _of_headers(operation: Operation) -> Sequence[Json]:
    return [
        {
            "name": each.name,
            "in": "header",
            "description": each.text,
            "schema": {"type": "string", "pattern": each.pattern},
        }
        for each in operation.headers
    ]
