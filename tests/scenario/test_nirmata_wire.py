"""Our own client of Nirmata's wire asks Kortex: streamed, whole, refused."""

import aiohttp
import orjson
import pytest

from adapters.llm.config import ProviderConfig
from adapters.llm.messages import (
    CompleteRequest,
    DoneChunk,
    ErrorChunk,
    Message,
    Role,
    StreamChunk,
    TextChunk,
)
from adapters.llm.nirmata.provider import Nirmata
from bot.domain.callers import CallerKind
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_api import token_for
from tests.fixtures_service import INGEST_TOKEN, shared_stage
from tests.stage import Stage, question_of, results

__all__ = ["shared_stage"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

SETTINGS = {"http": {"port": 0, "api_token": INGEST_TOKEN, "nirmata_wire": True}}
LOGS = {"product": "checkout", "time_range": "last 30m"}
asked: list[str] = []


def SCRIPT(request: Recorded) -> Round:  # noqa: N802 - what the shared fixture looks for
    """Look at logs and say so."""
    asked.append(question_of(request))
    if results(request):
        return Round(text=("I have looked [E1]. ", "The pool is full."))
    return Round(calls=(Call("core__get_logs", LOGS),))


async def _said(
    stage: Stage, token: str, *messages: Message, streaming: bool = True
) -> list[StreamChunk]:
    provider = Nirmata(
        ProviderConfig(
            "nirmata",
            api_key=token,
            base_url=f"http://127.0.0.1:{stage.service.http_port}",
            extra={"streaming": streaming},
        )
    )
    request = CompleteRequest(messages=messages, system="You are helpful.")
    try:
        return [chunk async for chunk in provider.stream(request)]
    finally:
        await provider.aclose()


@pytest.mark.parametrize("streaming", [True, False])
async def test_the_nirmata_client_reads_the_answer(shared_stage: Stage, streaming: bool) -> None:
    token = await token_for(shared_stage, "ci", "responder", kind=CallerKind.SERVICE)
    before = Message(Role.USER, text="is it up?"), Message(Role.ASSISTANT, text="Yes, since noon.")
    question = Message(Role.USER, text="why is checkout slow?")
    chunks = await _said(shared_stage, token, *before, question, streaming=streaming)

    *texts, last = chunks
    assert isinstance(last, DoneChunk)
    said = "".join(chunk.text for chunk in texts if isinstance(chunk, TextChunk))
    assert said.startswith("I have looked [E1].")
    assert asked[-1].endswith("why is checkout slow?")
    assert "Yes, since noon." in asked[-1]


@pytest.mark.parametrize("token", ["", "kortex_unknown"])
async def test_a_client_without_a_live_token_is_refused(shared_stage: Stage, token: str) -> None:
    chunks = await _said(shared_stage, token, Message(Role.USER, text="why?"))

    assert [type(chunk) for chunk in chunks] == [ErrorChunk]


@pytest.mark.parametrize(
    ("body", "query", "status"),
    [
        (b"{", "", 400),
        (b'{"messages": []}', "", 400),
        (b'{"messages": [{"role": "system", "content": "x"}]}', "", 400),
        (b'{"messages": [{"role": "user", "content": {"a": [[]]}}]}', "", 400),
        (b'{"messages": [{"role": "user", "content": "why?"}]}', "?channel=general", 403),
        (b'{"messages": [{"role": "user", "content": "why?"}]}', "?channel=@direct", 400),
        (
            b'{"messages": [{"role": "user", "content": [{"type": "text", "text": "why?"}]}]}',
            "",
            200,
        ),
    ],
)
async def test_an_unsupported_request_is_refused_with_a_message(
    shared_stage: Stage, body: bytes, query: str, status: int
) -> None:
    url = f"http://127.0.0.1:{shared_stage.service.http_port}/llm-apps/chat{query}"
    headers = {"Authorization": f"NIRMATA-API {INGEST_TOKEN}"}
    async with (
        aiohttp.ClientSession() as http,
        http.post(url, data=body, headers=headers) as answer,
    ):
        told = orjson.loads(await answer.read())
    assert answer.status == status
    assert told["message" if status == 200 else "error"]


async def test_the_documented_form_ends_with_done(shared_stage: Stage) -> None:
    url = f"http://127.0.0.1:{shared_stage.service.http_port}/llm-apps/chat?stream=true"
    body = {"messages": [{"role": "user", "content": "why?"}], "tools": []}
    headers = {"Authorization": f"Bearer {INGEST_TOKEN}"}
    async with (
        aiohttp.ClientSession() as http,
        http.post(url, json=body, headers=headers) as answer,
    ):
        lines = [orjson.loads(line) async for line in answer.content]

    assert [line["type"] for line in lines] == ["content", "done"]
    assert lines[1]["usage"]["total_tokens"] > 0
