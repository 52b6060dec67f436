"""The HTTP API of a running bot, as callers use it: tokens of people and services, streams read to their end."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson

from bot.domain.callers import CallerKind, KnownCaller, caller_id
from tests.stage import Stage

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """One event of a stream."""

    id: int
    name: str
    data: Json


@dataclass
class Api:
    """One caller of a bot on that port."""

    http: aiohttp.ClientSession
    port: int
    token: str
    headers: dict[str, str] = field(default_factory=dict)

    def _url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def _headers(self, more: Mapping[str, str]) -> dict[str, str]:
        shown = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return {**shown, **self.headers, **more}

    async def call(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> tuple[int, Json]:
        """Status and JSON. Header names are written with underscores."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        asking = self.http.request(method, self._url(path), json=body, headers=self._headers(named))
        async with asking as answer:
            raw = await answer.read()
            return answer.status, orjson.loads(raw)

    async def open(self, channel: str = "incident-checkout") -> str:
        """The id of a new conversation."""
        status, told = await self.call("POST", "/chat/v1/sessions", {"channel": channel})
        assert status == 201, told
        return str(told["id"])

    async def ask(self, session: str, text: str, **headers: str) -> list[Told]:
        path = f"/chat/v1/sessions/{session}/messages"
        async with self.stream("POST", path, {"text": text}, **headers) as events:
            return [each async for each in events]

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> AsyncIterator[AsyncIterator[Told]]:
        """Events as they come."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        shown = self._headers({"Accept": "*/*", **named})
        async with self.http.request(method, self._url(path), json=body, headers=shown) as answer:
            assert answer.status == 200, await answer.text()
            assert answer.content_type == "text/event-stream"
            yield _events(answer)


async def _events(answer: aiohttp.ClientResponse) -> AsyncIterator[Told]:
    lines: dict[str, str] = {}
    async for raw in answer.content:
        line = raw.decode().rstrip("\n")
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            lines[name] = value
        elif lines:
            yield Told(int(lines.get("id", 0)), lines["event"], orjson.loads(lines["data"]))
            lines = {}


async def token_for(
    stage: Stage,
    name: str,
    *roles: str,
    kind: CallerKind = CallerKind.PERSON,
    account: str = "",
) -> str:
    """A new token of that caller."""
    caller = KnownCaller(caller_id(kind, name), kind, name, frozenset(roles), account)
    made = await stage.service.base.stores.callers.create(caller, None, "cli:test")
    return made.token


async def caller(
    stage: Stage, http: aiohttp.ClientSession, name: str, *roles: str, account: str = ""
) -> Api:
    """A person who calls."""
    token = await token_for(stage, name, *roles, account=account)
    return Api(http, stage.service.http_port, token)
