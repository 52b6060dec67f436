"""Socket Mode: tickets, connections, one envelope to one of them, acknowledgements."""

import asyncio
import secrets
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

import orjson
from aiohttp import WSMessage, WSMsgType, web

from bot.demo.workspace.delivery import Ack, Envelope
from bot.demo.workspace.json_access import CONSTANTS, JsonObject, as_object, text_at

MAX_CONNECTIONS = 10  # https://docs.slack.dev/apis/events-api/using-socket-mode


@dataclass(slots=True)
class SocketModeHub:
    """The server's side of every Socket Mode connection of one app."""

    app_id: str
    notify: Callable[[], None]
    connections: list[web.WebSocketResponse] = field(default_factory=list)
    _tickets: set[str] = field(default_factory=set)
    _pending: dict[str, asyncio.Future[JsonObject | None]] = field(default_factory=dict)
    _turn: int = 0
    _arrival: asyncio.Event = field(default_factory=asyncio.Event)

    def issue_ticket(self) -> str:
        """A single-use right to connect."""
        ticket = secrets.token_urlsafe(16)
        self._tickets.add(ticket)
        return ticket

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Hold one connection until either side closes it."""
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets:
            return web.Response(status=403, text="invalid ticket")
        self._tickets.discard(ticket)
        socket = web.WebSocketResponse(heartbeat=30)
        await socket.prepare(request)
        if len(self.connections) >= MAX_CONNECTIONS:
            await socket.send_json({"type": "disconnect", "reason": "too_many_websockets"})
            await socket.close()
            return socket
        await self._greet(socket)
        try:
            async for frame in socket:
                self._receive(frame)
        finally:
            self._remove(socket)
        return socket

    async def _greet(self, socket: web.WebSocketResponse) -> None:
        hello: JsonObject = {
            "num_connections": len(self.connections) + 1,
            "connection_info": {"app_id": self.app_id},
        }
        await socket.send_json(CONSTANTS["hello"] | hello)
        self.connections.append(socket)
        self._arrival.set()
        self.notify()

    def _remove(self, socket: web.WebSocketResponse) -> None:
        if socket in self.connections:
            self.connections.remove(socket)
        if not self.connections:
            self._arrival.clear()
        self.notify()

    def _receive(self, frame: WSMessage) -> None:
        if frame.type is not WSMsgType.TEXT:
            return
        try:
            answer = as_object(orjson.loads(frame.data))
        except orjson.JSONDecodeError:
            return
        waiting = self._pending.get(text_at(answer, "envelope_id"))
        if waiting is not None and not waiting.done():
            payload = answer.get("payload")
            waiting.set_result(payload if isinstance(payload, dict) else None)

    async def send(self, envelope: Envelope, timeout_s: float) -> Ack:
        """To one connection, in turn. An event waits for a connection; a person does not."""
        if envelope.kind == "events_api":
            await self._arrival.wait()
        if not self.connections:
            return Ack(ok=False, reason="no_connection")
        self._turn += 1
        socket = self.connections[self._turn % len(self.connections)]
        envelope_id = str(uuid.uuid4())
        answer: asyncio.Future[JsonObject | None] = asyncio.get_running_loop().create_future()
        self._pending[envelope_id] = answer
        try:
            async with asyncio.timeout(timeout_s):
                await socket.send_str(_wire(envelope, envelope_id))
                return Ack(ok=True, body=await answer)
        except (TimeoutError, ConnectionError):
            return Ack(ok=False, reason="timeout")
        finally:
            del self._pending[envelope_id]

    async def refresh(self, reason: str = "refresh_requested") -> None:
        """Ask every connection to reconnect, as Slack does every few hours."""
        for socket in tuple(self.connections):
            self._remove(socket)
            await socket.send_json(
                {"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-local"}}
            )

    async def drop(self) -> None:
        for socket in tuple(self.connections):
            self._remove(socket)
            await socket.close()


def _wire(envelope: Envelope, envelope_id: str) -> str:
    frame: JsonObject = {
        "envelope_id": envelope_id,
        "type": envelope.kind,
        "accepts_response_payload": envelope.kind != "events_api",
        "payload": envelope.payload,
    }
    if envelope.kind == "events_api":
        frame |= {"retry_attempt": envelope.attempt, "retry_reason": envelope.reason}
    return orjson.dumps(frame).decode()
