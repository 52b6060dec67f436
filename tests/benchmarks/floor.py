"""The baseline: the least a Python client can do with plain httpx. No checks, no tools, no errors.

`aiter_raw`, `bytes.split`, orjson, and the pieces put together.
"""

from collections.abc import Sequence
from typing import Any

import httpx
import orjson

from tests.benchmarks.transcript import MODEL, RESULT_BYTES, ROUNDS, question

Json = dict[str, Any]
_PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages", "ollama": "/api/chat"}
_RESULT = "x" * RESULT_BYTES


def floor_client() -> httpx.AsyncClient:
    """Plain httpx, with room for every stream and its own default of idle connections.

    More idle ones would make its pool slower: https://github.com/encode/httpcore/issues/1035.
    """
    limits = httpx.Limits(max_connections=1_000, max_keepalive_connections=20)
    return httpx.AsyncClient(limits=limits, timeout=httpx.Timeout(120.0))


class Accumulated:
    """One round's text and calls, on any of the three wires."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.calls: dict[int, tuple[str, str, list[str]]] = {}
        self.pieces = 0

    def openai(self, event: Json) -> None:
        if not event["choices"]:
            return
        delta = event["choices"][0]["delta"]
        if content := delta.get("content"):
            self.text.append(content)
        for call in delta.get("tool_calls", ()):
            function = call["function"]
            if "id" in call:
                self.calls[call["index"]] = (call["id"], function["name"], [])
            self.calls[call["index"]][2].append(function["arguments"])

    def anthropic(self, event: Json) -> None:
        kind = event["type"]
        if kind == "content_block_delta":
            delta = event["delta"]
            if delta["type"] == "text_delta":
                self.text.append(delta["text"])
            else:
                self.calls[event["index"]][2].append(delta["partial_json"])
        elif kind == "content_block_start":
            block = event["content_block"]
            if block["type"] == "tool_use":
                self.calls[event["index"]] = (block["id"], block["name"], [])

    def ollama(self, event: Json) -> None:
        message = event["message"]
        if content := message["content"]:
            self.text.append(content)
        for call in message.get("tool_calls", ()):
            function = call["function"]
            text = orjson.dumps(function["arguments"]).decode()
            self.calls[len(self.calls)] = (call["id"], function["name"], [text])


async def floor_turn(
    client: httpx.AsyncClient, wire: str, url: str, tools: Sequence[Json], system: str, number: int
) -> tuple[str, int, int]:
    """One turn: its text, its pieces of text, its calls."""
    messages: list[Json] = [{"role": "user", "content": question(number)}]
    texts, pieces, calls = [], 0, 0
    for _ in range(ROUNDS):
        body = {"model": MODEL, "stream": True, "tools": tools, "system": system}
        round_ = Accumulated()
        await _read(client, wire, url + _PATHS[wire], {**body, "messages": messages}, round_)
        texts.append("".join(round_.text).strip())
        pieces += len(round_.text)
        calls += len(round_.calls)
        asked = [
            {"id": key, "name": name, "input": orjson.loads("".join(parts))}
            for key, name, parts in round_.calls.values()
        ]
        messages.append({"role": "assistant", "content": texts[-1], "tool_calls": asked})
        messages += [{"role": "tool", "id": each["id"], "content": _RESULT} for each in asked]
    return "\n\n".join(texts), pieces, calls


async def _read(
    client: httpx.AsyncClient, wire: str, url: str, body: Json, into: Accumulated
) -> None:
    take = getattr(into, wire)
    named = wire != "ollama"
    tail = b""
    async with client.stream("POST", url, content=orjson.dumps(body)) as response:
        async for data in response.aiter_raw():
            lines = (tail + data).split(b"\n")
            tail = lines.pop()
            for line in lines:
                if not named:
                    take(orjson.loads(line))
                elif line[:6] == b"data: " and line != b"data: [DONE]":
                    take(orjson.loads(line[6:]))
