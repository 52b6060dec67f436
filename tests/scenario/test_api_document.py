"""The API against its own description: every operation, with what fits and what does not."""

import asyncio
import re
import shlex
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson
import pytest
import pytest_asyncio
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from bot.web.api.document import PATH
from bot.web.api.models import EVENTS
from tests.fakes.model_server import Recorded, Round
from tests.fixtures_api import Api, caller
from tests.fixtures_service import INGEST_TOKEN, shared_stage
from tests.stage import Stage

__all__ = ["shared_stage"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

SETTINGS = {
    "http": {"port": 0, "api_token": INGEST_TOKEN, "callers": {"requests_per_minute": 99_999}}
}
OPERATIONS = 19
EXAMPLES = 4  # of an operation and of each kind: valid ones, and invalid ones
DEEP = "[" * 1_500 + "]" * 1_500
HOSTILE: Mapping[str, bytes] = {
    "no JSON": b"{",
    "another type": b"[]",
    "nothing": b"",
    "null": b"null",
    "a number of 128 bits": b'{"text": 340282366920938463463374607431768211456}',
    "a number no float holds": b'{"text": 1e999999}',
    "a lone surrogate": b'{"text": "\\ud800"}',
    "bytes that are no UTF-8": b'{"text": "\xff\xfe"}',
    "brackets": DEEP.encode(),
    "brackets inside": b'{"text": ' + DEEP.encode() + b"}",
    "too long a text": b'{"text": "' + b"a" * 50_000 + b'"}',
    "too large a body": b'{"text": "' + b"a" * 300_000 + b'"}',
    "a key twice, the last one wrong": b'{"text": "a", "text": 1}',
    "an unknown key": b'{"text": "a", "role": "admin"}',
    "blank": b'{"text": " \\n "}',
}


def SCRIPT(_request: Recorded) -> Round:  # noqa: N802 - what the shared fixture looks for
    return Round(text=("Here.",))


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def api(shared_stage: Stage) -> Any:
    async with aiohttp.ClientSession() as http:
        yield await caller(shared_stage, http, "alice", "responder")


def _checked(document: Mapping[str, Any], api: Api, session: str, mode: GenerationMode) -> None:
    """Call every operation as the document says, or as it forbids, and hold the answers to it."""
    schema = schemathesis.openapi.from_dict(dict(document))
    found = [each for each in schema.get_all_operations() if isinstance(each, Ok)]
    assert len(found) == OPERATIONS
    cases = [each.ok().as_strategy(generation_mode=mode) for each in found]

    @seed(7)
    @settings(
        max_examples=EXAMPLES * len(cases),
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=st.one_of(cases))
    def called(case: Any) -> None:
        if (
            case.path_parameters
            and "session" in case.path_parameters
            and not case.path.endswith("/events")
        ):
            case.path_parameters["session"] = session
        headers = {"Authorization": f"Bearer {api.token}", "Accept": "application/json"}
        answer = case.call(base_url=f"http://127.0.0.1:{api.port}", headers=headers, timeout=10.0)
        assert answer.status_code < 500, (case.path, answer.text)
        case.validate_response(
            answer,
            checks=[
                not_a_server_error,
                status_code_conformance,
                content_type_conformance,
                response_schema_conformance,
            ],
        )

    called()


async def _document(api: Api) -> Mapping[str, Any]:
    status, found = await api.call("GET", PATH)
    assert status == 200
    return found


# The server's loop uses the random numbers that hypothesis watches while it makes an example.
@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisDeprecationWarning")
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
async def test_every_operation_answers_as_the_document_describes(
    api: Api, mode: GenerationMode
) -> None:
    session = await api.open()
    await asyncio.to_thread(_checked, await _document(api), api, session, mode)


async def test_the_api_document_describes_every_served_operation(api: Api) -> None:
    found = await _document(api)
    assert found["openapi"] == "3.1.0"
    assert len([1 for path in found["paths"].values() for _ in path]) == OPERATIONS
    schemas = found["components"]["schemas"]
    assert {model.__name__ for model in EVENTS.values()} <= set(schemas)
    named = re.findall(r"#/components/schemas/(\w+)", orjson.dumps(found).decode())
    assert set(named) <= set(schemas)


@pytest.mark.parametrize("what", HOSTILE)
async def test_a_hostile_body_is_refused_with_a_message(api: Api, what: str) -> None:
    session = await api.open()
    url = f"http://127.0.0.1:{api.port}/chat/v1/sessions/{session}/messages"
    headers = {"Authorization": f"Bearer {api.token}", "Content-Type": "application/json"}
    async with api.http.post(url, data=HOSTILE[what], headers=headers) as answer:
        told = orjson.loads(await answer.read())
    assert answer.status in (400, 413)
    assert told["error"]["message"]
    assert "aaaa" not in str(told)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Encoding": "gzip"}, 415),
        ({"Last-Event-ID": "340282366920938463463374607431768211456"}, 400),
        ({"Last-Event-ID": "-1"}, 400),
        ({"Idempotency-Key": "a b"}, 400),
        ({"Idempotency-Key": "k" * 129}, 400),
    ],
)
async def test_a_hostile_header_is_refused(
    api: Api, headers: Mapping[str, str], status: int
) -> None:
    session = await api.open()
    url = f"http://127.0.0.1:{api.port}/chat/v1/sessions/{session}/messages"
    named = {"Authorization": f"Bearer {api.token}", "Content-Type": "application/json", **headers}
    async with api.http.post(url, data=b'{"text": "why?"}', headers=named) as answer:
        await answer.read()
    assert answer.status == status


PAGE = Path(__file__).parents[2] / "docs" / "api.md"
CURLS = re.findall(r"^curl (.*?)$", PAGE.read_text("utf-8").replace("\\\n", " "), re.MULTILINE)


@pytest.mark.parametrize("curl", CURLS)
async def test_every_documented_call_is_served(api: Api, curl: str) -> None:
    session, words = await api.open(), shlex.split(curl)
    address = urlsplit(next(each for each in words if each.startswith("$KORTEX")))
    path = re.sub(r"s_[0-9a-f]{24}", session, address.path.removeprefix("$KORTEX"))
    bodies = [body for flag, body in pairwise(words) if flag == "-d"]
    method = "POST" if bodies or "POST" in words else "GET"
    url = f"http://127.0.0.1:{api.port}{path}?{address.query}"
    headers = {"Authorization": f"Bearer {INGEST_TOKEN}", "Content-Type": "application/json"}
    if "Idempotency-Key" not in curl:  # only its owner asks in a conversation
        api = Api(api.http, api.port, INGEST_TOKEN)
    headers["Authorization"] = f"Bearer {api.token}"
    async with api.http.request(method, url, data="".join(bodies), headers=headers) as answer:
        told = b"endless" if "events" in path else await answer.read()
    # The proposal of the page was never raised.
    opens = path.endswith("chat/v1/sessions")
    assert answer.status == (404 if "/proposals/" in path else 201 if opens else 200)
    assert told


async def test_every_operation_is_on_the_reference_page(api: Api) -> None:
    page = PAGE.read_text("utf-8")
    for path in (await _document(api))["paths"]:
        last = re.sub(r"\{\w+\}", "", path).rstrip("/").rpartition("/")[2]
        assert last in page, path
