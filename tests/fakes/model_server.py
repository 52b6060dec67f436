"""A model server on loopback that speaks the true wires of every provider.

Give it a script of rounds; each chat request takes the next one, over any wire:

    async with ModelServer([Round(calls=(Call("core__get_logs", {"product": "checkout"}),)),
                            Round(text=("The new ", "version leaks."))]) as server:
        create(ProviderConfig("anthropic", api_key="k", base_url=server.url))

Nothing is slept for unless `pace_s` says so: `Round.hold` stops before a piece until its event is
set, `server.disconnected` is set when a client hangs up in the middle.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

from aiohttp import web

from tests.fakes import model_wires, newer_wires
from tests.fakes.model_wires import Call, Failure, Json, Round
from tests.fakes.wire_failures import ERRORS, failed

__all__ = ["Call", "Failure", "ModelServer", "Recorded", "Round", "Script"]


@dataclass(frozen=True)
class Recorded:
    """One chat request as it arrived; header names are lower case."""

    wire: str
    headers: Mapping[str, str]
    body: Json
    raw: bytes
    target: str  # path and query, as sent

    @property
    def model(self) -> str:
        in_path = unquote(self.target.removeprefix("/model/").split("/", 1)[0])
        return str(self.body.get("model") or in_path)


EVENTS = {
    "anthropic": model_wires.anthropic,
    "openai": model_wires.openai,
    "ollama": model_wires.ollama,
    "openai-responses": newer_wires.responses,
    "bedrock": newer_wires.bedrock,
    "nirmata": newer_wires.nirmata,
}
CONTENT_TYPES = {
    "ollama": "application/x-ndjson",
    "nirmata": "application/x-ndjson",
    "bedrock": "application/vnd.amazon.eventstream",
}

Script = Sequence[Round] | Callable[[Recorded], Round]


class ModelServer:
    """See the module. A callable script picks the round for a request and never runs out.

    `tools` says of a model whether it has tools of its own; `tells_tools` False is an older Nirmata
    backend, which has no endpoint to ask.
    """

    def __init__(
        self,
        script: Script,
        *,
        models: Sequence[str] = ("test-model",),
        tools: Mapping[str, bool] | None = None,
        tells_tools: bool = True,
    ) -> None:
        self._script = script
        self._next: Iterator[Round] = iter(() if callable(script) else script)
        self._models = models
        self._tools = dict(tools or {})
        self._tells_tools = tells_tools
        self._calls = 0
        self._runner: web.AppRunner | None = None
        self.requests: list[Recorded] = []
        self.other_requests: list[tuple[str, str]] = []
        self.streams_tools = True  # whether a Nirmata backend streams a request with tools
        self.started = asyncio.Event()
        self.disconnected = asyncio.Event()
        self.url = ""
        self._transports: list[asyncio.BaseTransport] = []

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/messages", self._chat("anthropic"))
        app.router.add_post("/v1/chat/completions", self._chat("openai"))
        app.router.add_post("/api/chat", self._chat("ollama"))
        app.router.add_post("/v1/responses", self._chat("openai-responses"))
        app.router.add_post("/model/{model}/converse-stream", self._chat("bedrock"))
        app.router.add_post("/llm-apps/chat", self._chat("nirmata"))
        app.router.add_get("/llm-apps/capabilities", self._nirmata_capabilities)
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

    def forget_tools(self, model: str) -> None:
        """From now on an Ollama model has no tools of its own."""
        self._tools[model] = False

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
            headers = {name.lower(): value for name, value in request.headers.items()}
            recorded = Recorded(wire, headers, json.loads(raw), raw, request.raw_path)
            self.requests.append(recorded)
            if wire in {"ollama", "nirmata"} and recorded.body.get("tools"):
                refusal = self._no_tools(recorded.model)
                if refusal is not None:
                    return refusal
            chosen = self._take(recorded)
            if chosen.failure is not None:
                return failed(wire, chosen.failure)
            if wire == "nirmata" and not recorded.body["stream"]:
                return web.json_response(newer_wires.nirmata_whole(chosen, self._numbered(chosen)))
            return await self._streamed(request, recorded, chosen)

        return handle

    async def _streamed(
        self, request: web.Request, recorded: Recorded, chosen: Round
    ) -> web.StreamResponse:
        kind = CONTENT_TYPES.get(recorded.wire, "text/event-stream")
        response = web.StreamResponse(headers={"content-type": kind})
        try:
            await self._held(chosen, -1)
            await response.prepare(request)
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
        events = EVENTS[recorded.wire](chosen, recorded.model, self._numbered(chosen))
        if chosen.at_once:
            last = [] if chosen.error_at is None else [ERRORS[recorded.wire]]
            yield b"".join([*events[: chosen.error_at], *last])
            return
        for number, event in enumerate(events):
            await self._held(chosen, number)
            if chosen.pace_s:
                await asyncio.sleep(chosen.pace_s)
            if number == chosen.cut_at:
                yield None
                return
            if number == chosen.error_at:
                yield ERRORS[recorded.wire]
                return
            yield event

    async def _held(self, chosen: Round, number: int) -> None:
        if chosen.hold is not None and number == chosen.hold_at:
            self.started.set()
            await chosen.hold.wait()

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

    async def _nirmata_capabilities(self, request: web.Request) -> web.Response:
        self.other_requests.append((request.method, request.path))
        if not self._tells_tools:
            raise web.HTTPNotFound
        supported = all(self._tools.get(name, True) for name in self._models)
        told = {"tools_supported": supported, "max_tools": 128}
        return web.json_response(told | {"streaming_tools": self.streams_tools})

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
