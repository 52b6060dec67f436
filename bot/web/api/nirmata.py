"""The `llm-apps/chat` wire of Nirmata's clients, on request: Kortex answers where they expect a model.

Three forms, as its documents and its shipped client have them: `?chunked=true` lines of `{"id", "type",
"data"}`; `?stream=true` lines of `{"type", "delta"}` up to `done`; else one object. Tools of the client are
never called: Kortex uses its own, which only read. The words come when the answer is whole and checked,
for these wires cannot take any back.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import orjson
from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from bot.domain.callers import Caller
from bot.domain.chats import ChatEventKind, ChatSession
from bot.domain.ids import MessageTs
from bot.ports.failures import StorageUnavailable
from bot.web.api import models
from bot.web.api.callers import UNAUTHORIZED, CallerAuthenticator, Denied
from bot.web.api.operations import MAX_BODY_BYTES
from bot.web.api.sessions import Conversations
from bot.web.ingest import IngestRefused, read_body
from tools.redactor import RedactionFailed

CHAT_PATH: Final = "/llm-apps/chat"
CAPABILITIES_PATH: Final = "/llm-apps/capabilities"
CHANNEL: Final = "incident-console"  # as `kortex ask`; `?channel=` names another
_SCHEME: Final = "nirmata-api"
_EARLIER: Final = 6  # messages of the conversation that go with the question
_EARLIER_CHARS: Final = 2_000  # of each

Form = Literal["chunked", "stream", "whole"]


class _Message(BaseModel):
    model_config = ConfigDict(
        extra="ignore", frozen=True, hide_input_in_errors=True, defer_build=True
    )

    role: str
    content: JsonValue = None

    @property
    def words(self) -> str:
        parts = self.content if isinstance(self.content, list) else [self.content]
        found = [part.get("text") if isinstance(part, dict) else part for part in parts]
        return "\n".join(each for each in found if isinstance(each, str)).strip()


class _Request(BaseModel):
    model_config = ConfigDict(
        extra="ignore", frozen=True, hide_input_in_errors=True, defer_build=True
    )

    messages: list[_Message] = Field(min_length=1, max_length=1_000)
    stream: bool = False

    @property
    def question(self) -> str:
        said = [each for each in self.messages if each.role in {"user", "assistant"} and each.words]
        at = max((n for n, each in enumerate(said) if each.role == "user"), default=-1)
        if at < 0:
            raise Denied(400, "invalid", "messages: one of role user, with text.")
        before = said[:at][-_EARLIER:]
        told = [f"{each.role}: {each.words[:_EARLIER_CHARS]}" for each in before]
        asked = said[at].words[: models.MOST_CHARS // 2]
        return "\n\n".join(["Said before:", *told, asked]) if told else asked


@dataclass(frozen=True, slots=True)
class _Asked:
    caller: Caller
    session: ChatSession
    message: MessageTs


@dataclass(frozen=True, slots=True)
class NirmataWire:
    """Served over the same conversations, callers and roles as the API."""

    authenticator: CallerAuthenticator
    conversations: Conversations

    def routes(self) -> Sequence[web.RouteDef]:
        """The chat, and what it says it can do."""
        return [
            web.post(CHAT_PATH, _answering(self._chat)),
            web.get(CAPABILITIES_PATH, _answering(self._capabilities)),
        ]

    async def _capabilities(self, request: web.Request) -> web.StreamResponse:
        await self.authenticator.authenticate(request, _SCHEME)
        told = {"tools_supported": True, "streaming_tools": True, "max_tools": 128}
        return web.json_response(told)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        caller = await self.authenticator.authenticate(request, _SCHEME)
        asked = _read(await read_body(request, MAX_BODY_BYTES))
        talks, channel = self.conversations, request.query.get("channel", CHANNEL)
        wanted = _channel(channel)
        await talks.permissions.require_ask(caller, wanted)
        question = asked.question
        talks.asks.take(caller.key)
        with talks.streams.open.one(caller.key):
            session = await talks.chats.open(wanted, caller.person, caller.name)
            ts = await talks.asked(session, caller, question, "nirmata")
            return await self._tell(request, _form(request, asked), _Asked(caller, session, ts))

    async def _tell(self, request: web.Request, form: Form, asked: _Asked) -> web.StreamResponse:
        caller, session, streams = asked.caller, asked.session, self.conversations.streams
        response = web.StreamResponse(headers={"Cache-Control": "no-store"})
        response.content_type = "application/json" if form == "whole" else "application/x-ndjson"
        if form != "whole":
            await response.prepare(request)
        done: JsonValue = None
        async for event in streams.answer(session, caller.person, asked.message):
            data = streams.shown(event, session)
            if event.kind is ChatEventKind.DONE:
                done = data
            elif form == "chunked" and (line := _step(event.kind, data)) is not None:
                await response.write(_line({"id": f"{event.seq}", **line}))
        whole = done is not None and await self._is_still_admitted(request)
        await _end(
            request, response, form, [models.DoneEvent.model_validate(done)] if whole else []
        )
        return response

    async def _is_still_admitted(self, request: web.Request) -> bool:
        try:
            await self.authenticator.reauthenticate(request, _SCHEME)
        except Denied:
            return False
        return True


async def _end(
    request: web.Request, response: web.StreamResponse, form: Form, last: Sequence[models.DoneEvent]
) -> None:
    lines = [line for done in last for line in _final(form, done)]
    lines = lines or [{"type": "error", "error": "The answer ended elsewhere; ask again."}]
    if form == "whole":
        response.set_status(200 if last else 503)
        await response.prepare(request)
    for line in lines:
        await response.write(_line(line))
    await response.write_eof()


def _final(form: Form, done: models.DoneEvent) -> Sequence[dict[str, JsonValue]]:
    text = "\n\n".join([done.text, *(f"> {each}" for each in done.notices)]).strip()
    usage: dict[str, JsonValue] = {
        "prompt_tokens": done.usage.input_tokens,
        "completion_tokens": done.usage.output_tokens,
        "total_tokens": done.usage.input_tokens + done.usage.output_tokens,
    }
    match form:
        case "chunked":
            return [{"id": done.message_id, "type": "Text", "data": text}]
        case "stream":
            said: dict[str, JsonValue] = {"type": "content", "delta": text}
            return [said, {"type": "done", "usage": usage, "model": done.model}]
        case "whole":
            about: dict[str, JsonValue] = {"model": done.model, "verdict": done.verdict}
            return [{"message": text, "usage": usage, "metadata": about}]


def _step(kind: ChatEventKind, data: JsonValue) -> dict[str, JsonValue] | None:
    """A local tool call in plain words, as the shipped backend shows it."""
    if not isinstance(data, dict):
        return None
    match kind:
        case ChatEventKind.TOOL_START:
            return {"type": "ToolStart", "data": str(data["tool"])}
        case ChatEventKind.TOOL_END:
            return {"type": "ToolComplete", "data": f"{data['tool']}: {data['summary']}"}
        case _:
            return None


def _form(request: web.Request, asked: _Request) -> Form:
    if request.query.get("chunked") == "true":
        return "chunked"
    return "stream" if asked.stream or request.query.get("stream") == "true" else "whole"


def _read(body: bytes) -> _Request:
    try:
        return _Request.model_validate_json(body)
    except ValidationError as error:
        raise Denied(400, "invalid", "messages: a list of {role, content}.") from error


def _channel(name: str) -> str:
    try:
        return models.NewSession(channel=name).channel
    except ValidationError as error:
        raise Denied(400, "invalid", "channel: the name of a channel.") from error


def _line(value: dict[str, JsonValue]) -> bytes:
    return orjson.dumps(value) + b"\n"


def _answering(
    run: Callable[[web.Request], Awaitable[web.StreamResponse]],
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """With refusals as these clients read them: words under `error`."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await run(request)
        except Denied as denied:
            words = UNAUTHORIZED if denied.status == 401 else str(denied)
            return web.json_response({"error": words}, status=denied.status)
        except IngestRefused as error:
            return web.json_response({"error": str(error)}, status=error.status)
        except RedactionFailed:
            words = "Your text could not be checked for secrets, so it was not stored."
            return web.json_response({"error": words}, status=422)
        except StorageUnavailable:
            words = "The database is not available; nothing was started. Try again."
            return web.json_response({"error": words}, status=503)

    return handle
