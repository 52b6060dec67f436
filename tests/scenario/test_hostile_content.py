"""A model may write anything, over any wire: its turn ends in words and its thread goes on.

Content is what arrives within a sound answer: arguments, text, names, ids, counts. It is put into
a whole turn, and then into the history of later turns of the same thread: at the same provider, and
at another one.
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from bot.domain.turn_events import TurnFinished
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_providers import WIRES
from tests.fixtures_threads import Bots, Thread, bots, bots_on_postgresql

__all__ = ["bots", "bots_on_postgresql"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

# The two that write calls into their text where a backend has no tools.
EMULATED = ("ollama-emulated", "nirmata-emulated")
MIB = 1024 * 1024
BIG: dict[str, Any] = {"args_piece_chars": MIB}


def batched(calls: Sequence[Call], size: int) -> Iterator[Sequence[Call]]:
    return (calls[at : at + size] for at in range(0, len(calls), size))


def of(value: str) -> str:
    """Arguments; one of them is this JSON."""
    return f'{{"product": "checkout", "time_range": "last 1m", "query": {value}}}'


def nested(opening: str, closing: str, depth: int) -> str:
    return of(f"{opening * depth}1{closing * depth}")


ARGUMENTS = {
    "a 128-bit number": of(str(2**127)),
    "one above 64 bits": of(str(2**64)),
    "a negative one": of(str(-(2**63) - 1)),
    "5,000 digits": of("9" * 5000),
    "1e999": of("1e999"),
    "300 digits after the point": of("0." + "3" * 300),
    "NaN": of("NaN"),
    "-Infinity": of("-Infinity"),
    "a lone surrogate": of('"\\ud800"'),
    "a lone low surrogate": of('"a\\udc00b"'),
    "a surrogate in a key": '{"\\ud800": 1}',
    "NUL": of('"a\\u0000b"'),
    "NUL in a key": '{"a\\u0000": 1}',
    "a raw control character": of('"a\x01\tb"'),
    "bytes that are no UTF-8": of('"\udcff\udcfe"'),
    "a byte order mark": "\ufeff" + of('"a"'),
    "100 lists": nested("[", "]", 100),
    "300 objects": nested('{"a":', "}", 300),
    "1,000 lists": nested("[", "]", 1000),
    "1,500 lists": nested("[", "]", 1500),
    "100,000 lists": nested("[", "]", 100_000),
    "100,000 objects": nested('{"a":', "}", 100_000),
    "a key twice": '{"product": "checkout", "product": "payments"}',
    "a key of 100,000 characters": of("{" + f'"{"k" * 100_000}": 1' + "}"),
    "10,000 keys": of(json.dumps({f"k{n}": n for n in range(10_000)})),
    "1 MB of text": of(f'"{"a" * MIB}"'),
    "a list": "[1]",
    "a number": "5",
    "null": "null",
    "a text": '"product"',
    "no JSON": "product=checkout",
    "white space": " \n ",
    "nothing whole": '{"product": ',  # the last: what follows a marker might end it
}
OTHER: Mapping[str, Round] = {
    "a surrogate in the text": Round(text=("a \ud800 b", "\udfff")),
    "NUL in the text": Round(text=("a \x00 b",)),
    "bytes that are no UTF-8 in the text": Round(text=("a \udcff", "\udcc3 b")),
    "terminal codes": Round(text=("\x1b[2J\x9b1m\u202e\u2028",)),
    "2 MB of text": Round(text=("word " * 50_000,) * 8),
    "an unfinished marker": Round(text=('<<TOOL name="core__get_logs" args=\'{"a": ',)),
    "100,000 openings": Round(text=("<" * 100_000, "<<TOOL" * 10_000)),
    "no name": Round(calls=(Call("", {}),)),
    "a name of 10,000 characters": Round(calls=(Call("n" * 10_000, {}),)),
    "a name no vendor takes": Round(calls=(Call("get logs;\x00\n\ud800é", {}),)),
    "an id of 10,000 characters": Round(calls=(Call("core__get_logs", {}, id="i" * 10_000),)),
    "an id with NUL": Round(calls=(Call("core__get_logs", {}, id="a\x00\ud800b"),)),
    "500 calls": Round(calls=(Call("core__get_current_time", {}),) * 500),
    "more tokens than there are": Round(text=("a",), input_tokens=10**30, output_tokens=2**63),
    "fewer than none": Round(text=("a",), input_tokens=-5, output_tokens=-(2**70)),
    "12 MB of arguments": Round(
        calls=(Call("core__get_logs", of(f'"{"a" * (12 * MIB)}"')),), args_piece_chars=4 * MIB
    ),
}


def ends_in_words(final: TurnFinished) -> None:
    """No bug of ours ended it or one of its calls."""
    told = [*final.notices, *(outcome.content for outcome in final.outcomes)]
    assert [words for words in told if "internal error" in words] == []


def fits_every_server(request: Recorded) -> None:
    """What readers of JSON and vendors' validators refuse is in none of what is sent."""
    text = request.raw.decode()
    body = json.loads(text, parse_constant=pytest.fail)
    assert depth_of(body) < 64  # .NET's reader; other readers allow more
    assert re.search(r"(?i)\\ud[89ab]", text) is None
    assert all(abs(number) < 2**63 for number in numbers_in(body))
    names = re.findall(r'"(?:name|tool_name)": ?"((?:[^"\\]|\\.)*)"', text)
    assert [name for name in names if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)] == []


def depth_of(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth_of, inner), default=0) if isinstance(value, dict | list) else 0


def numbers_in(value: object) -> list[int]:
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return [number for each in inner for number in numbers_in(each)]
    return [value] if isinstance(value, int) else []


async def continues(thread: Thread) -> None:
    """Later turns of the thread are answered: by the same provider, and by another one."""
    other = "anthropic" if thread.wire.startswith("openai") else "openai"
    for over in (thread.wire, other):
        later = await thread.ask(over=over)
        assert (later.end.value, later.text) == ("answered", "Nothing was found."), later.notices
        for request in thread.bots.server.requests:
            fits_every_server(request)


async def odd_arguments(thread: Thread) -> None:
    """One turn of many rounds: each call goes back to the model with any arguments."""
    calls = [Call("core__get_logs", arguments) for arguments in ARGUMENTS.values()]
    rounds = [Round(text=("Looking. ",), calls=tuple(two), **BIG) for two in batched(calls, 2)]

    final = await thread.ask(*rounds)

    ends_in_words(final)
    assert (final.end.value, len(final.outcomes)) == ("answered", len(ARGUMENTS)), final.notices
    assert all(len(json.dumps(o.record.arguments)) < 64 * 1024 for o in final.outcomes)
    await continues(thread)


async def odd_turns(thread: Thread) -> None:
    """A turn for each, one after the other."""
    for content in OTHER.values():
        ends_in_words(await thread.ask(content))
        for request in thread.bots.server.requests:
            fits_every_server(request)
    await continues(thread)


@pytest.mark.parametrize("hostile", [odd_arguments, odd_turns])
@pytest.mark.parametrize("wire", [*WIRES, *EMULATED])
async def test_a_turn_of_hostile_content_ends_with_text_and_its_thread_continues(
    bots: Bots, wire: str, hostile: Callable[[Thread], Awaitable[None]]
) -> None:
    await hostile(bots.thread(wire))


async def test_postgresql_stores_all_hostile_content(bots_on_postgresql: Bots) -> None:
    thread = bots_on_postgresql.thread("anthropic")

    await odd_arguments(thread)
    await odd_turns(thread)
