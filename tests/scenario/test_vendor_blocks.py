"""Signed and encrypted thinking goes back to the vendor that made it, to the byte, and nowhere else."""

import base64
import random
from collections.abc import Iterator

import pytest

from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_threads import Bots, Thread, bots

__all__ = ["bots"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

WIRES = ["anthropic", "bedrock", "openai-responses"]
SECRET = "AKIAIOSFODNN7EXAMPLE"
TIME = Call("core__get_current_time", {})
THOUGHT = "The pool is exhausted since the deploy; the logs should show timeouts."


def signatures(seed: str, count: int) -> list[str]:
    """As vendors write them: random bytes, in either alphabet of Base64."""
    chance = random.Random(seed)
    encode = [base64.b64encode, base64.urlsafe_b64encode]
    return [encode[n % 2](chance.randbytes(150 + 20 * n)).decode() for n in range(count)]


def missing(request: Recorded, parts: list[str]) -> Iterator[str]:
    text = request.raw.decode().replace("\\/", "/")
    return (part for part in parts if part not in text)


async def thread_that_thought(bots: Bots, wire: str, thoughts: list[tuple[str, str]]) -> Thread:
    """One turn: a round of tools for each thought, and an answer."""
    thread = bots.thread(wire)
    rounds = [Round(text=("Looking. ",), calls=(TIME,), thought=each) for each in thoughts]
    final = await thread.ask(*rounds)
    assert final.end.value == "answered"
    return thread


@pytest.mark.parametrize("readable", [THOUGHT, ""])
@pytest.mark.parametrize("wire", WIRES)
async def test_thinking_returns_unchanged_in_its_turn_and_later_ones(
    bots: Bots, wire: str, readable: str
) -> None:
    opaque = signatures(wire, 25)

    thread = await thread_that_thought(bots, wire, [(readable, each) for each in opaque])
    assert list(missing(bots.server.requests[-1], opaque)) == []

    await thread.ask()
    assert list(missing(bots.server.requests[-1], [*opaque, readable])) == []


@pytest.mark.parametrize("wire", WIRES)
async def test_thinking_goes_to_no_other_vendor(bots: Bots, wire: str) -> None:
    opaque = signatures(wire, 3)
    thread = await thread_that_thought(bots, wire, [(THOUGHT, each) for each in opaque])

    for over in {"anthropic", "openai", "bedrock", "ollama"} - {wire.removesuffix("-responses")}:
        await thread.ask(over=over)
        sent = "".join(request.raw.decode() for request in bots.server.requests)
        assert not any(part in sent for part in [*opaque, THOUGHT])


@pytest.mark.parametrize("wire", WIRES)
async def test_readable_thinking_with_a_secret_is_stored_nowhere(bots: Bots, wire: str) -> None:
    (opaque,) = signatures(wire, 1)
    thread = await thread_that_thought(bots, wire, [(f"The key is {SECRET}.", opaque)])

    assert SECRET not in "".join(thread.journal_text)
    await thread.ask()
    assert all(SECRET not in request.raw.decode() for request in bots.server.requests)
