"""What only one provider does: addresses, keys, signatures, questions beside the conversation."""

import hashlib
import hmac
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.llm.config import ProviderConfig
from adapters.llm.messages import DoneChunk, StopReason, Usage
from adapters.llm.model_table import ModelOverride
from adapters.llm.port import collect
from adapters.llm.registry import create
from tests.fakes.model_server import Call, ModelServer, Recorded, Round
from tests.fixtures_providers import ASKED, config_for, serving

MARKED = '<<TOOL name="core__get_logs" args=\'{"product": "o\'brien"}\'>>'
PROFILE = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-6"


async def asked_once(config: ProviderConfig) -> Any:
    provider = create(config)
    answer = await collect(provider.stream(ASKED))
    await provider.aclose()
    return answer


async def test_nirmata_gets_the_requests_of_its_own_client() -> None:
    async with serving("nirmata", [Round(text=("ok",))]) as (provider, server):
        await collect(provider.stream(ASKED))
    (request,) = server.requests
    assert request.headers["authorization"] == "NIRMATA-API test-key"
    assert request.target == "/llm-apps/chat?model=test-model&chunked=true"
    assert request.body["tools"][0]["type"] == "function"


async def test_nirmata_without_a_model_leaves_the_choice_to_the_backend() -> None:
    async with serving("nirmata", [Round(text=("ok",))], model="") as (provider, server):
        await collect(provider.stream(ASKED))
    assert server.requests[0].target == "/llm-apps/chat?chunked=true"
    assert "model" not in server.bodies[0]


@pytest.mark.parametrize(
    ("tells", "requests"), [(True, [False, False]), (False, [True, False, False])]
)
async def test_a_nirmata_backend_without_tools_gets_emulated_ones_and_a_warning(
    tells: bool, requests: list[bool]
) -> None:
    script = [Round(text=("Let me look. ", MARKED[:9], MARKED[9:])), Round(text=("ok",))]
    without = {"test-model": False}
    async with ModelServer(script, tools=without, tells_tools=tells) as server:
        provider = create(config_for("nirmata", server.url))
        answer = await collect(provider.stream(ASKED))
        await collect(provider.stream(ASKED))
        await provider.aclose()
    assert answer.text == "Let me look. "
    assert [call.arguments for call in answer.tool_calls] == ['{"product": "o\'brien"}']
    assert isinstance(answer.end, DoneChunk)
    assert "no native tools" in answer.end.warnings[0]
    assert [("tools" in body) for body in server.bodies] == requests
    assert server.other_requests == [("GET", "/llm-apps/capabilities")]


@pytest.mark.parametrize("streams", [True, False])
async def test_a_nirmata_backend_that_does_not_stream_tools_is_not_asked_to(streams: bool) -> None:
    script = [
        Round(text=("Let me look. ",), calls=(Call("core__get_logs", {"product": "checkout"}),)),
        Round(text=("ok",)),
    ]
    async with ModelServer(script) as server:
        server.streams_tools = streams
        provider = create(config_for("nirmata", server.url))
        with_tools = await collect(provider.stream(ASKED))
        without = await collect(provider.stream(replace(ASKED, tools=())))
        await provider.aclose()
    assert (with_tools.text, without.text) == ("Let me look. ", "ok")
    assert [call.name for call in with_tools.tool_calls] == ["core__get_logs"]
    assert [body["stream"] for body in server.bodies] == [streams, True]
    assert [("chunked=true" in r.target) for r in server.requests] == [streams, True]


@pytest.mark.parametrize(
    ("enabled", "backend_has_tools", "native", "asked"),
    [
        ("false", True, False, 0),
        ("true", False, True, 1),
        ("", True, True, 1),
        ("", False, False, 1),
    ],
)
async def test_nirmata_tools_enabled_says_whether_tools_are_native(
    enabled: str, backend_has_tools: bool, native: bool, asked: int
) -> None:
    async with ModelServer(
        [Round(text=("ok",))] * 2, tools={"test-model": backend_has_tools}
    ) as server:
        provider = create(config_for("nirmata", server.url, extra={"tools_enabled": enabled}))
        await collect(provider.stream(ASKED))
        await provider.aclose()
    assert ("tools" in server.bodies[0]) is native
    assert len(server.other_requests) == asked


@asynccontextmanager
async def replying(path: str, reply: Any) -> AsyncIterator[tuple[str, list[web.Request]]]:
    """A server with one JSON answer at one path."""
    seen: list[web.Request] = []

    async def handle(request: web.Request) -> web.Response:
        await request.read()
        seen.append(request)
        return web.json_response(reply)

    app = web.Application()
    app.router.add_post(path, handle)
    async with TestServer(app) as server:
        yield str(server.make_url("")), seen


CONVERSED = {
    "output": {"message": {"role": "assistant", "content": [{"text": "Fine."}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 9, "outputTokens": 2, "cacheReadInputTokens": 5},
}


@pytest.mark.parametrize(
    ("wire", "path", "reply", "usage", "query"),
    [
        ("bedrock", "/model/{model}/converse", CONVERSED, Usage(9, 5, 0, 2), ""),
        (
            "nirmata",
            "/llm-apps/chat",
            {"message": "Fine.", "usage": {"prompt_tokens": 9, "completion_tokens": 2}},
            Usage(9, 0, 0, 2),
            "model=test-model&provider=bedrock",
        ),
    ],
)
async def test_an_answer_without_streaming_can_be_requested(
    wire: str, path: str, reply: Any, usage: Usage, query: str
) -> None:
    async with replying(path, reply) as (url, seen):
        answer = await asked_once(config_for(wire, url, extra={"streaming": False}))
    assert answer.text == "Fine."
    assert answer.end == DoneChunk(StopReason.END_TURN, usage, "test-model")
    assert seen[0].query_string == query


async def test_bedrock_accepts_an_api_key_and_sends_the_whole_model_id_in_one_segment() -> None:
    async with serving("bedrock", [Round(text=("ok",))], model=PROFILE) as (provider, server):
        await collect(provider.stream(ASKED))
    (request,) = server.requests
    assert request.headers["authorization"] == "Bearer test-key"
    assert request.model == PROFILE
    assert request.target.count("/") == 3


AWS = {
    "region": "eu-central-1",
    "access_key_id": "AKIDEXAMPLE",
    "secret_access_key": "very-secret",
    "session_token": "passing",
}


async def test_bedrock_signs_the_request_as_it_arrives() -> None:
    async with serving("bedrock", [Round(text=("ok",))], api_key="", model=PROFILE, extra=AWS) as (
        provider,
        server,
    ):
        await collect(provider.stream(ASKED))
    (request,) = server.requests
    given = request.headers["authorization"]
    assert "/eu-central-1/bedrock/aws4_request" in given
    assert given.endswith(f"Signature={signature_of(request, given)}")
    assert "very-secret" not in str(request.headers)


def signature_of(request: Recorded, given: str) -> str:
    """Recomputed by the server's rules from what it received."""
    names = re.search("SignedHeaders=([^,]+)", given)
    assert names
    scope = given.split("Credential=AKIDEXAMPLE/")[1].split(",", maxsplit=1)[0]
    headers = [f"{name}:{request.headers[name]}" for name in names[1].split(";")]
    path = quote(request.target, safe="/")
    body = hashlib.sha256(request.raw).hexdigest()
    canonical = "\n".join(["POST", path, "", *headers, "", names[1], body])
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = "\n".join(["AWS4-HMAC-SHA256", request.headers["x-amz-date"], scope, hashed])
    key = b"AWS4very-secret"
    for part in [*scope.split("/"), to_sign]:
        key = hmac.digest(key, part.encode(), "sha256")
    return key.hex()


async def test_bedrock_without_any_key_is_unavailable() -> None:
    for extra in ({}, {"access_key_id": "AKIDEXAMPLE"}):
        config = ProviderConfig("bedrock", extra={**extra, "profile": ""})
        assert "access key" in str(create(config).unavailable_reason)


@pytest.mark.parametrize(
    ("extra", "own", "path"),
    [
        ({}, {}, "/v1/chat/completions"),
        ({"api": "responses"}, {}, "/v1/responses"),
        ({"api": "responses"}, {"test-model": ModelOverride(api="chat")}, "/v1/chat/completions"),
        ({}, {"test-model": ModelOverride(api="responses")}, "/v1/responses"),
    ],
)
async def test_openai_s_interface_is_selected_per_model(
    extra: dict[str, Any], own: dict[str, ModelOverride], path: str
) -> None:
    script = [Round(text=("ok",))]
    async with serving("openai", script, extra=extra, models=own) as (provider, server):
        await collect(provider.stream(ASKED))
    assert server.requests[0].target == path


@pytest.mark.parametrize(
    ("model", "responses"),
    [("gpt-5.6-sol", True), ("gpt-6.1-sol", True), ("gpt-5", False), ("gpt-4o", False)],
)
def test_the_model_selects_the_interface_at_openai(model: str, responses: bool) -> None:
    provider: Any = create(ProviderConfig("openai", api_key="k", model=model))
    assert provider.uses_responses(model) is responses


async def test_a_base_url_with_a_query_keeps_it_for_both_interfaces() -> None:
    async with ModelServer([Round(text=("ok",))] * 2) as server:
        base = f"{server.url}/v1?api-version=2026-01-01"
        await asked_once(config_for("openai", base))
        await asked_once(config_for("openai-responses", base))
    assert [request.target for request in server.requests] == [
        "/v1/chat/completions?api-version=2026-01-01",
        "/v1/responses?api-version=2026-01-01",
    ]


async def test_ollama_asks_older_servers_about_one_model_at_a_time() -> None:
    shown: list[str] = []

    async def tags(_request: web.Request) -> web.Response:
        return web.json_response({"models": [{"name": "old:latest"}]})

    async def show(request: web.Request) -> web.Response:
        shown.append((await request.json())["model"])
        return web.json_response({"capabilities": ["completion"]})

    async def chat(request: web.Request) -> web.Response:
        body = await request.json()
        said = {"role": "assistant", "content": str("tools" in body)}
        done = {"message": said, "done": True, "done_reason": "stop"}
        return web.Response(body=json.dumps(done).encode() + b"\n")

    app = web.Application()
    app.router.add_get("/api/tags", tags)
    app.router.add_post("/api/show", show)
    app.router.add_post("/api/chat", chat)
    async with TestServer(app) as server:
        url = str(server.make_url(""))
        answer = await asked_once(ProviderConfig("ollama", base_url=url, model="old"))
    assert (answer.text, shown) == ("False", ["old"])
