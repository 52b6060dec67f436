"""Chunks that arrive together are passed on together, up to the turn of other streams."""

import asyncio
from contextlib import aclosing

import pytest

from adapters.llm.messages import (
    DoneChunk,
    ErrorChunk,
    ErrorKind,
    StreamChunk,
    TextChunk,
    ToolCallChunk,
)
from tests.fakes.model_server import Call, Round
from tests.fixtures_providers import ASKED, WIRES, everything, serving


async def answer(wire: str, chosen: Round) -> list[StreamChunk]:
    async with serving(wire, [chosen]) as (provider, _):
        return await everything(provider, ASKED)


@pytest.mark.parametrize("wire", WIRES)
async def test_the_words_of_one_read_are_one_text(wire: str) -> None:
    chunks = await answer(wire, Round(text=("Der ", "Kürbis ", "– ✓"), at_once=True))

    assert chunks[0] == TextChunk("Der Kürbis – ✓")
    assert [type(chunk) for chunk in chunks] == [TextChunk, DoneChunk]


@pytest.mark.parametrize("wire", WIRES)
async def test_a_call_of_the_same_read_follows_its_words(wire: str) -> None:
    calls = (Call("core__get_logs", {"product": "checkout", "limit": 5}),)
    chunks = await answer(wire, Round(text=("Let me ", "look."), calls=calls, at_once=True))

    assert chunks[0] == TextChunk("Let me look.")
    assert [type(chunk) for chunk in chunks] == [TextChunk, ToolCallChunk, DoneChunk]


@pytest.mark.parametrize("wire", WIRES)
async def test_an_error_of_the_same_read_loses_no_words(wire: str) -> None:
    words = Round(text=("half ", "an ", "answer ", "is "), error_at=4, at_once=True)
    said, error = await answer(wire, words)

    assert isinstance(said, TextChunk)
    assert said.text.startswith("half an ")
    assert isinstance(error, ErrorChunk)
    assert error.kind is ErrorKind.OVERLOADED


@pytest.mark.parametrize("wire", WIRES)
async def test_leaving_after_the_first_words_of_a_burst_hangs_up(wire: str) -> None:
    never = asyncio.Event()
    script = [Round(text=("word ",) * 1_000, hold=never, hold_at=900)]
    async with serving(wire, script) as (provider, server):
        async with aclosing(provider.stream(ASKED)) as chunks:  # type: ignore[type-var]
            first = await anext(chunks)
        async with asyncio.timeout(1):
            await server.disconnected.wait()

    assert isinstance(first, TextChunk)
    assert len(first.text) < len("word ") * 900
