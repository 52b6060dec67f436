"""`POST /ingest/v1/events`: deploys, incidents and findings from outside, as CloudEvents JSON.

Structured mode, one event or a batch (CloudEvents 1.0, JSON format). Idempotent by (source, id), so
a sender may repeat unanswered requests. The valid events of a batch are stored; the answer
describes the error of each other one.
"""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Final, Literal, Self

import structlog
from aiohttp import web
from pydantic import (
    AwareDatetime,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from adapters.ingested_event import IngestedEvent
from bot.ports.failures import StorageUnavailable
from bot.ports.ingested_events import EventStore
from tools.capabilities import Clock
from tools.outside_json import Lenient, OutsideModel, Text, as_text, parse, set_instant, shaped

PATH = "/ingest/v1/events"
MAX_BYTES = 1024 * 1024
MAX_KEY_BYTES = 2600  # PostgreSQL's index takes 2,704 of a row, its header among them
READ_TIMEOUT_S = 10.0
RETRY_AFTER_S = 5
MOST_PROBLEMS: Final = 100  # of a batch that are described; all are counted
_LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)
_BODY: Final = TypeAdapter(JsonValue)
_log = structlog.stdlib.get_logger(__name__)
# https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
_ONE = "application/cloudevents+json"
_BATCH = "application/cloudevents-batch+json"
_PLAIN = "application/json"  # what simple webhooks send; the body says which of the two it is

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class IngestRefused(Exception):
    """A request that is not taken. `code` is stable; the message says what to change."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class _CloudEvent(OutsideModel):
    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    specversion: Annotated[Literal["1.0"], BeforeValidator(as_text)]
    id: str = Field(min_length=1, max_length=512)
    source: str = Field(min_length=1, max_length=2048)
    type: str = Field(min_length=1, max_length=512)
    subject: Text = Field(default="", max_length=512)
    product: Text = Field(default="", max_length=512)
    time: Lenient[Annotated[AwareDatetime, Field(lt=_LATEST)] | None] = None
    data: dict[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _can_be_found_again(self) -> Self:
        if len(self.source.encode()) + len(self.id.encode()) > MAX_KEY_BYTES:
            raise ValueError(f"its source and id take more than {MAX_KEY_BYTES} bytes")
        return self

    def ingested(self, received_at: datetime) -> IngestedEvent:
        named = self.data.get("product")
        product = self.product or (named if isinstance(named, str) else "") or self.subject
        if not product:
            raise IngestRefused(
                400, "invalid", f"event {self.id}: name a product, in `product` or `data.product`"
            )
        return IngestedEvent(
            id=self.id,
            source=self.source,
            type=self.type,
            product=product,
            at=set_instant(self.time) or received_at,
            data=self.data,
        )


_EVENT: Final = TypeAdapter(_CloudEvent)


def ingest_handler(
    events: EventStore, token: str, clock: Clock, max_bytes: int = MAX_BYTES
) -> Handler:
    """The handler of `PATH`. Raises ValueError without a token: then it must not be served."""
    if not token:
        raise ValueError("ingest needs a token")

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            check_token(request, token)
            media_type = _media_type(request)
            taken = _parse(media_type, await read_body(request, max_bytes), clock.now())
            added = await events.add(taken.events)
        except IngestRefused as refused:
            return refusal(refused)
        except StorageUnavailable:
            return refusal(
                IngestRefused(503, "unavailable", "events cannot be stored now; send again")
            )
        answer: dict[str, JsonValue] = {"added": added, "known": len(taken.events) - added}
        if taken.problems:
            _log.warning("ingest.invalid_events", count=len(taken.problems))
            answer |= {
                "invalid": len(taken.problems),
                "problems": [*taken.problems[:MOST_PROBLEMS]],
            }
        return web.json_response(answer)

    return handle


def switched_off(setting: str) -> Handler:
    """The handler of a path without a configured secret: 503 and the name of the setting."""

    async def handle(_request: web.Request) -> web.StreamResponse:
        return refusal(IngestRefused(503, "disabled", f"set [http] {setting} and restart Kortex"))

    return handle


def check_token(request: web.Request, token: str) -> None:
    """Raises IngestRefused unless the request carries the bearer token."""
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    same = hmac.compare_digest(given.strip().encode("utf-8", "replace"), token.encode())
    if scheme.lower() != "bearer" or not same:
        raise IngestRefused(401, "unauthorized", "a bearer token is needed")


def _media_type(request: web.Request) -> str:
    if request.content_type not in (_ONE, _BATCH, _PLAIN):
        raise IngestRefused(415, "unsupported_media_type", f"send {_ONE} or {_BATCH}")
    return request.content_type


async def read_body(request: web.Request, max_bytes: int) -> bytes:
    """The body, counted while it is read: neither its header nor its compression is trusted.

    Raises IngestRefused.
    """
    too_large = IngestRefused(413, "too_large", f"send at most {max_bytes} bytes at a time")
    if (request.content_length or 0) > max_bytes:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(READ_TIMEOUT_S):
            async for chunk in request.content.iter_any():
                body += chunk
                if len(body) > max_bytes:
                    raise too_large
    except TimeoutError as error:
        raise IngestRefused(408, "timeout", "the body did not arrive in time") from error
    return bytes(body)


@dataclass(frozen=True, slots=True)
class _Taken:
    events: Sequence[IngestedEvent]
    problems: Sequence[str]


def _parse(media_type: str, body: bytes, received_at: datetime) -> _Taken:
    try:
        found = parse(_BODY, body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        raise IngestRefused(400, "invalid", f"the body is not JSON: {first['msg']}") from error
    if isinstance(found, list):
        if media_type == _ONE:
            raise IngestRefused(400, "invalid", f"{media_type} does not match the body")
        entries = found
    else:
        if media_type == _BATCH:
            raise IngestRefused(400, "invalid", f"{media_type} does not match the body")
        entries = [found]
    events, problems = [], []
    for number, entry in enumerate(entries):
        try:
            events.append(_event(entry, number).ingested(received_at))
        except IngestRefused as refused:
            problems.append(str(refused))
    if problems and not events:
        raise IngestRefused(400, "invalid", problems[0])
    return _Taken(events, problems)


def _event(raw: object, number: int) -> _CloudEvent:
    try:
        return shaped(_EVENT, raw)
    except ValidationError as error:
        # The error and its place, never the value: it may be a secret.
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "it"
        raise IngestRefused(400, "invalid", f"event {number}: {where}: {first['msg']}") from error


def refusal(refused: IngestRefused) -> web.Response:
    """The answer to a request that is not taken."""
    headers = {
        401: {"WWW-Authenticate": "Bearer"},
        413: {"Connection": "close"},
        503: {"Retry-After": str(RETRY_AFTER_S)},
    }
    return web.json_response(
        {"error": {"code": refused.code, "message": str(refused)}},
        status=refused.status,
        headers=headers.get(refused.status, {}),
    )
