"""What an operation of the API is, and how a request becomes a call of it: who, what, and every refusal in one form.

The routes and the OpenAPI document are made from the same list.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler
from pydantic import BaseModel, ValidationError

from bot.domain.callers import Caller
from bot.ports.failures import StorageUnavailable
from bot.web.api.callers import CallerAuthenticator, Denied
from bot.web.api.models import Error, ErrorDetail, Nothing
from bot.web.ingest import IngestRefused, read_body
from tools.redactor import RedactionFailed

_log = structlog.stdlib.get_logger(__name__)

MAX_BODY_BYTES: Final = 262_144
RETRY_AFTER_S: Final = 5
_JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Call:
    """One request, admitted and valid. `body` is None if the operation has none."""

    request: web.Request
    caller: Caller
    query: BaseModel
    body: BaseModel | None = None

    def path(self, name: str) -> str:
        return self.request.match_info[name]

    @property
    def given(self) -> BaseModel:
        assert self.body is not None  # noqa: S101 - the route has read it
        return self.body


Run: TypeAlias = Callable[[Call], Awaitable[BaseModel | web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Header:
    name: str
    pattern: str
    text: str


@dataclass(frozen=True, slots=True)
class Operation:
    """`path` in the syntax of aiohttp and OpenAPI.

    `streams`: answers with events; then also with `answer`, if the client accepts only JSON.
    `path_patterns` are those of the parts of the path.
    """

    method: str
    path: str
    name: str
    summary: str
    answer: type[BaseModel]
    run: Run
    body: type[BaseModel] | None = None
    query: type[BaseModel] = Nothing
    streams: bool = False
    status: int = 200
    headers: Sequence[Header] = ()
    path_patterns: Mapping[str, str] = field(default_factory=dict)


def routes(
    operations: Sequence[Operation], authenticator: CallerAuthenticator
) -> Sequence[web.RouteDef]:
    return [_route(each, _handler(each, authenticator)) for each in operations]


def _route(operation: Operation, handler: Handler) -> web.RouteDef:
    if operation.method == "GET":
        # A head has no body, and a stream no end: it would be written behind the head of another answer.
        return web.get(operation.path, handler, allow_head=not operation.streams)
    return web.route(operation.method, operation.path, handler)


def _handler(
    operation: Operation, authenticator: CallerAuthenticator
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            caller = await authenticator.authenticate(request)
            _check_path(operation, request)
            query = _valid(operation.query, dict(request.query))
            body = await _body(request, operation.body) if operation.body else None
            answer = await operation.run(Call(request, caller, query, body))
        except Denied as denied:
            return refused(denied)
        except IngestRefused as error:
            return refused(Denied(error.status, error.code, str(error)))
        except StorageUnavailable as error:
            # The caller sees it; the clock's jobs log the outage once (database.down).
            _log.debug("api.storage_unavailable", operation=operation.name, error=str(error))
            why = "The database is not available; nothing was done. Try again."
            return refused(Denied(503, "unavailable", why, RETRY_AFTER_S))
        except RedactionFailed:
            why = "Your text could not be checked for secrets, so it was not stored."
            return refused(Denied(422, "not_redacted", why))
        if isinstance(answer, web.StreamResponse):
            return answer
        return json_response(answer, operation.status)

    return handle


def _check_path(operation: Operation, request: web.Request) -> None:
    for name, pattern in operation.path_patterns.items():
        if not re.search(pattern, request.match_info[name], re.ASCII):
            raise Denied(404, "not_found", "There is nothing by this name. Is the id complete?")


def json_response(answer: BaseModel, status: int = 200) -> web.Response:
    """JSON response with `Cache-Control: no-store`."""
    return web.Response(
        body=answer.model_dump_json().encode(),
        status=status,
        content_type=_JSON,
        headers={"Cache-Control": "no-store"},
    )


def refused(denied: Denied) -> web.Response:
    error = Error(error=ErrorDetail(code=denied.code, message=str(denied)))
    response = json_response(error, denied.status)
    if denied.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if denied.status == 413:
        response.headers["Connection"] = "close"
    if denied.retry_after_s:
        response.headers["Retry-After"] = str(denied.retry_after_s)
    return response


async def _body(request: web.Request, model: type[BaseModel]) -> BaseModel:
    if request.content_type != _JSON:
        raise Denied(415, "unsupported_media_type", f"Send {_JSON}.")
    body = await read_body(request, MAX_BODY_BYTES)
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise Denied(400, "invalid", _words(error)) from error


def _valid(model: type[BaseModel], values: Mapping[str, str]) -> BaseModel:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise Denied(400, "invalid", _words(error)) from error


def _words(error: ValidationError) -> str:
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else first["msg"]
