"""The chat API as a person's terminal uses it: requests, and answers that survive a lost connection."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from adapters.errors import AdapterError, BadAnswer
from adapters.http.body import read_capped
from adapters.http.errors import mapped_errors
from bot.domain.chats import ChatEventKind
from bot.web.api import models

READ_S: Final = 45.0  # three of the service's heartbeats
MAX_BYTES: Final = 64 << 20  # a conversation with all its answers
MAX_EVENT_BYTES: Final = 4 << 20  # the last event of an answer holds all of its text
PATIENCE_S: Final = 120.0  # without a connection, before an answer is left to itself
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 5.0
_SERVICE: Final = "Kortex"
_NOT_TAKEN: Final = (
    "the token was rejected: mistyped, expired, revoked, or from another Kortex. On the host of "
    "the service, `kortex token list` shows the valid ones and `kortex token create NAME` "
    "makes one"
)
AnswerT = TypeVar("AnswerT", bound=BaseModel)


class ChatFailed(Exception):
    """A request that the service refused, in its words. `code` is stable."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Lost:
    """The connection broke; the answer goes on, and is read again from where it was."""

    why: str


class ChatClient:
    """Of one caller. `client` has the service's address and shows the caller's token."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def me(self) -> models.Me:
        """Who the token is of. Every method raises ChatFailed and AdapterError."""
        return await self._call("GET", "/api/v1/me", models.Me)

    async def open(self, channel: str) -> models.Session:
        wanted = models.NewSession(channel=channel)
        return await self._call("POST", "/chat/v1/sessions", models.Session, wanted)

    async def sessions(self) -> models.Sessions:
        return await self._call("GET", "/chat/v1/sessions", models.Sessions)

    async def messages(self, session: str) -> models.Messages:
        return await self._call("GET", f"/chat/v1/sessions/{session}/messages", models.Messages)

    async def evidence(self, session: str, message: str, number: int) -> models.Evidence:
        path = f"/chat/v1/sessions/{session}/messages/{message}/evidence/{number}"
        return await self._call("GET", path, models.Evidence)

    async def stop(self, session: str) -> bool:
        """Ask the running answer to end; whether there was one."""
        path = f"/chat/v1/sessions/{session}/stop"
        return (await self._call("POST", path, models.Stopped)).stopping

    async def proposals(self) -> models.Proposals:
        return await self._call("GET", "/api/v1/proposals", models.Proposals)

    async def proposal(self, proposal: str) -> models.Proposal:
        return await self._call("GET", f"/api/v1/proposals/{proposal}", models.Proposal)

    async def decide(
        self, proposal: str, how: Literal["confirm", "reject"], reason: str = ""
    ) -> models.Decided:
        """Judged by the service, as a press in Slack is."""
        path = f"/api/v1/proposals/{proposal}/{how}"
        return await self._call("POST", path, models.Decided, models.NewDecision(reason=reason))

    async def ask(self, session: str, text: str) -> AsyncIterator[models.Event | Lost]:
        """Ask, and read the answer to its end; a connection that breaks is made again.

        The question is sent again with its own key, so that it is asked once.
        """
        key, body = secrets.token_hex(16), models.NewMessage(text=text)
        path, after = f"/chat/v1/sessions/{session}/messages", 0
        lost_s, pause_s = 0.0, FIRST_PAUSE_S
        while True:
            headers = {"Idempotency-Key": key} | ({"Last-Event-ID": str(after)} if after else {})
            try:
                async for number, event in self._events(path, body, headers):
                    lost_s, pause_s, after = 0.0, FIRST_PAUSE_S, number or after
                    yield event
                    if isinstance(event, models.DoneEvent):
                        return
                why = "the service ended the connection"
            except AdapterError as error:
                if not error.retryable or lost_s >= PATIENCE_S:
                    raise
                why = error.message
            if not lost_s:
                yield Lost(why)
            await asyncio.sleep(pause_s)
            lost_s += pause_s
            pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)

    async def _events(
        self, path: str, body: BaseModel, headers: dict[str, str]
    ) -> AsyncIterator[tuple[int, models.Event]]:
        shown = {"Accept": "text/event-stream", "Content-Type": "application/json", **headers}
        request = self._client.build_request(
            "POST", path, content=body.model_dump_json().encode(), headers=shown
        )
        with mapped_errors(_SERVICE):
            response = await self._client.send(request, stream=True)
            try:
                if not response.is_success:
                    raise _refused(response, await read_capped(response, MAX_BYTES))
                async for number, name, data in _lines(response):
                    if (event := _event(name, data)) is not None:
                        yield number, event
            finally:
                await response.aclose()

    async def _call(
        self, method: str, path: str, answer: type[AnswerT], body: BaseModel | None = None
    ) -> AnswerT:
        content = body.model_dump_json().encode() if body is not None else None
        headers = {"Content-Type": "application/json"} if content is not None else {}
        with mapped_errors(_SERVICE):
            request = self._client.build_request(method, path, content=content, headers=headers)
            response = await self._client.send(request, stream=True)
            try:
                raw = await read_capped(response, MAX_BYTES)
            finally:
                await response.aclose()
        if not response.is_success:
            raise _refused(response, raw)
        try:
            return answer.model_validate_json(raw)
        except ValidationError as error:
            raise BadAnswer("this is not Kortex's chat API; check --url") from error


async def _lines(response: httpx.Response) -> AsyncIterator[tuple[int, str, bytes]]:
    """Events as (id, name, data); https://html.spec.whatwg.org/multipage/server-sent-events.html.

    Of that what our service sends: one `data` line an event, and comments.
    """
    buffer, number, name, data = b"", 0, "", b""
    async for part in response.aiter_bytes():
        *lines, buffer = (buffer + part).split(b"\n")
        if len(buffer) > MAX_EVENT_BYTES:
            raise BadAnswer(f"an event of more than {MAX_EVENT_BYTES} bytes")
        for line in lines:
            field, _, value = line.partition(b": ")
            if field == b"id" and value.isdigit() and len(value) <= 18:
                number = int(value)
            elif field == b"event":
                name = value.decode("ascii", "replace")
            elif field == b"data":
                data = value
            elif not line and name:
                yield number, name, data
                number, name, data = 0, "", b""


def _event(name: str, data: bytes) -> models.Event | None:
    if name not in ChatEventKind.__members__.values():
        return None
    try:
        return models.EVENTS[ChatEventKind(name)].model_validate_json(data)
    except ValidationError as error:
        raise BadAnswer(f"an event `{name}` that cannot be read", retryable=False) from error


def _refused(response: httpx.Response, raw: bytes) -> Exception:
    """In the service's own words where it says any; retried where it asks for that."""
    try:
        error = models.Error.model_validate_json(raw).error
    except ValidationError:
        why = f"{response.request.url.host} answered {response.status_code}"
        return BadAnswer(f"{why}; is this Kortex's address?", status=response.status_code)
    if response.status_code == 503:
        return AdapterError(error.message, status=503, retryable=True)
    why = _NOT_TAKEN if response.status_code == 401 else error.message
    return ChatFailed(why, error.code)
