"""A model server on loopback that speaks the true wires of Anthropic, OpenAI and Ollama.

Give it a script of rounds; each chat request takes the next one, whatever wire it came over:

    async with ModelServer([Round(calls=(Call("core__get_logs", {"product": "checkout"}),)),
                            Round(text=("The new ", "version leaks."))]) as server:
        create(ProviderConfig("anthropic", api_key="k", base_url=server.url))

Nothing is slept for unless `pace_s` says so: `Round.hold` stops before a piece until its event is
set, `server.disconnected` is set when a client hangs up in the middle.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from aiohttp import web

Json = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A tool call; `arguments` may be raw text to be malformed. `id` empty: numbered by the server."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True)
class Failure:
    """An HTTP error instead of an answer. `body` None: the wire's own error shape."""

    status: int
    message: str = "scripted failure"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Json | None = None


@dataclass(frozen=True)
class Round:
    """One scripted answer: text pieces, then calls, then the end."""

    text: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    stop: str = ""  # "max_tokens", "refusal"; empty: what text and calls imply
    input_tokens: int = 100
    output_tokens: int = 20
    cache_read: int = 0
    args_piece_chars: int = 7  # tool arguments arrive in pieces of this size
    pace_s: float = 0.0  # wait before each event; for benchmarks
    hold: asyncio.Event | None = None  # wait for it before event `hold_at`
    hold_at: int = 0
    cut_at: int | None = None  # close the connection instead of event number `cut_at`
    error_at: int | None = None  # an in-stream error instead of event number `error_at`
    failure: Failure | None = None


@dataclass(frozen=True)
class Recorded:
    """One chat request as it arrived."""

    wire: str
    headers: Mapping[str, str]
    body: Json
    raw: bytes


Script = Sequence[Round] | Callable[[Recorded], Round]


class ModelServer:
    """See the module. A callable script picks the round for a request and never runs out.

    `tools` are the Ollama models' capabilities: () makes a model without tools of its own.
    """

    def __init__(
        self,
        script: Script,
        *,
        models: Sequence[str] = ("test-model",),
        tools: Mapping[str, bool] | None = None,
    ) -> None:
        self._script = script
        self._next: Iterator[Round] = iter(() if callable(script) else script)
        self._models = models
        self._tools = dict(tools or {})
        self._calls = 0
        self._runner: web.AppRunner | None = None
        self.requests: list[Recorded] = []
        self.other_requests: list[tuple[str, str]] = []
        self.started = asyncio.Event()
        self.disconnected = asyncio.Event()
        self.url = ""
        self._transports: list[asyncio.BaseTransport] = []

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/messages", self._chat("anthropic"))
        app.router.add_post("/v1/chat/completions", self._chat("openai"))
        app.router.add_post("/api/chat", self._chat("ollama"))
        app.router.add_get("/api/tags", self._tags)
        app.router.add_post("/api/show", self._show)
        self._runner = web.AppRunner(
            app, shutdown_timeout=0.05, handler_cancellation=True, access_log=None
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, backlog=1024).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def bodies(self) -> list[Json]:
        """The JSON bodies of the chat requests, in order."""
        return [request.body for request in self.requests]

    @property
    def connections(self) -> int:
        """How many connections chat requests came over."""
        return len(self._transports)

    def _take(self, request: Recorded) -> Round:
        if callable(self._script):
            return self._script(request)
        return next(self._next, Round(failure=Failure(500, "the script has no round left")))

    def _chat(self, wire: str) -> Callable[[web.Request], Any]:
        async def handle(request: web.Request) -> web.StreamResponse:
            if request.transport is not None and request.transport not in self._transports:
                self._transports.append(request.transport)
            raw = await request.read()
            recorded = Recorded(wire, dict(request.headers), json.loads(raw), raw)
            self.requests.append(recorded)
            chosen = self._take(recorded)
            if chosen.failure is not None:
                return _failed(wire, chosen.failure)
            if wire == "ollama" and recorded.body.get("tools"):
                refusal = self._no_tools(recorded.body["model"])
                if refusal is not None:
                    return refusal
            return await self._streamed(request, recorded, chosen)

        return handle

    async def _streamed(
        self, request: web.Request, recorded: Recorded, chosen: Round
    ) -> web.StreamResponse:
        kind = "application/x-ndjson" if recorded.wire == "ollama" else "text/event-stream"
        response = web.StreamResponse(headers={"content-type": kind})
        await response.prepare(request)
        try:
            async for event in self._paced(recorded, chosen):
                if event is None:
                    assert request.transport is not None
                    request.transport.abort()
                    break
                await response.write(event)
        except (asyncio.CancelledError, ConnectionResetError):
            self.disconnected.set()
            raise
        return response

    async def _paced(self, recorded: Recorded, chosen: Round) -> AsyncIterator[bytes | None]:
        events = _EVENTS[recorded.wire](chosen, str(recorded.body["model"]), self._numbered(chosen))
        for number, event in enumerate(events):
            if chosen.hold is not None and number == chosen.hold_at:
                self.started.set()
                await chosen.hold.wait()
            if chosen.pace_s:
                await asyncio.sleep(chosen.pace_s)
            if number == chosen.cut_at:
                yield None
                return
            if number == chosen.error_at:
                yield _ERRORS[recorded.wire]
                return
            yield event

    def _numbered(self, chosen: Round) -> list[tuple[str, str, str]]:
        """(id, name, arguments text) of a round's calls."""
        out = []
        for call in chosen.calls:
            self._calls += 1
            text = call.arguments
            arguments = text if isinstance(text, str) else json.dumps(text)
            out.append((call.id or f"call_{self._calls}", call.name, arguments))
        return out

    async def _tags(self, request: web.Request) -> web.Response:
        self.other_requests.append((request.method, request.path))
        entries = [
            {"name": name, "model": name, "capabilities": self._capabilities(name)}
            for name in self._models
        ]
        return web.json_response({"models": entries})

    async def _show(self, request: web.Request) -> web.Response:
        self.other_requests.append((request.method, request.path))
        name = (await request.json())["model"]
        return web.json_response({"capabilities": self._capabilities(name)})

    def _capabilities(self, name: str) -> list[str]:
        return ["completion", "tools"] if self._tools.get(name, True) else ["completion"]

    def _no_tools(self, name: str) -> web.Response | None:
        if self._tools.get(name, True):
            return None
        return web.json_response({"error": f"{name} does not support tools"}, status=400)


def _failed(wire: str, failure: Failure) -> web.Response:
    shapes: dict[str, Json] = {
        "anthropic": {
            "type": "error",
            "error": {"type": _anthropic_name(failure.status), "message": failure.message},
        },
        "openai": {"error": {"message": failure.message, "type": "scripted", "code": None}},
        "ollama": {"error": failure.message},
    }
    body = shapes[wire] if failure.body is None else failure.body
    return web.json_response(body, status=failure.status, headers=dict(failure.headers))


def _anthropic_name(status: int) -> str:
    names = {
        400: "invalid_request_error",
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        429: "rate_limit_error",
        529: "overloaded_error",
    }
    return names.get(status, "api_error")


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _sse(event: Json, *, named: bool) -> bytes:
    name = f"event: {event['type']}\n" if named else ""
    return f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n".encode()


def _anthropic(chosen: Round, model: str, calls: list[tuple[str, str, str]]) -> list[bytes]:
    usage = {
        "input_tokens": chosen.input_tokens,
        "cache_read_input_tokens": chosen.cache_read,
        "cache_creation_input_tokens": 0,
        "output_tokens": 1,
    }
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": model}
    events: list[Json] = [
        {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}}
    ]
    blocks: list[tuple[Json, list[Json]]] = []
    if chosen.text:
        deltas = [{"type": "text_delta", "text": piece} for piece in chosen.text]
        blocks.append(({"type": "text", "text": ""}, deltas))
    for call_id, name, arguments in calls:
        start = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        pieces = ["", *_pieces(arguments, chosen.args_piece_chars)]
        blocks.append(
            (start, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces])
        )
    for index, (start, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events.extend(
            {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
        )
        events.append({"type": "content_block_stop", "index": index})
    stop = chosen.stop or ("tool_use" if calls else "end_turn")
    events.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": None},
            "usage": {"output_tokens": chosen.output_tokens},
        }
    )
    events.append({"type": "message_stop"})
    return [_sse(event, named=True) for event in events]


def _openai(chosen: Round, model: str, calls: list[tuple[str, str, str]]) -> list[bytes]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}
    deltas: list[Json] = [{"role": "assistant", "content": None}]
    deltas.extend({"content": piece} for piece in chosen.text)
    for index, (call_id, name, arguments) in enumerate(calls):
        begin = {"name": name, "arguments": ""}
        deltas.append(
            {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": begin}]}
        )
        deltas.extend(
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in _pieces(arguments, chosen.args_piece_chars)
        )
    stops = {"max_tokens": "length", "refusal": "content_filter"}
    stop = stops.get(chosen.stop, "tool_calls" if calls else "stop")
    events: list[Json] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]
    events.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}]})
    prompt = chosen.input_tokens + chosen.cache_read
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": chosen.output_tokens,
        "total_tokens": prompt + chosen.output_tokens,
        "prompt_tokens_details": {"cached_tokens": chosen.cache_read},
    }
    events.append({**head, "choices": [], "usage": usage})
    return [*(_sse(event, named=False) for event in events), b"data: [DONE]\n\n"]


def _ollama(chosen: Round, model: str, calls: list[tuple[str, str, str]]) -> list[bytes]:
    head = {"model": model, "created_at": "2026-01-01T00:00:00Z"}

    def line(message: Json, **more: Any) -> bytes:
        said = {"role": "assistant", "content": "", **message}
        return json.dumps({**head, "message": said, "done": False, **more}).encode() + b"\n"

    lines = [line({"content": piece}) for piece in chosen.text]
    for call_id, name, arguments in calls:
        function = {"name": name, "arguments": json.loads(arguments)}
        lines.append(line({"tool_calls": [{"id": call_id, "function": function}]}))
    usage = {
        "prompt_eval_count": chosen.input_tokens + chosen.cache_read,
        "eval_count": chosen.output_tokens,
    }
    reason = "length" if chosen.stop == "max_tokens" else "stop"
    return [*lines, line({}, done=True, done_reason=reason, **usage)]


_EVENTS: dict[str, Callable[[Round, str, list[tuple[str, str, str]]], list[bytes]]] = {
    "anthropic": _anthropic,
    "openai": _openai,
    "ollama": _ollama,
}
_ERRORS = {
    "anthropic": _sse(
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        named=True,
    ),
    "openai": _sse({"error": {"message": "Overloaded", "code": 503}}, named=False),
    "ollama": b'{"error":"server busy, please try again"}\n',
}
