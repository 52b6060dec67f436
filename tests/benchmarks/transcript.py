"""The one turn every benchmark replays: 3 rounds, about 590 events, 4 tool calls, 500 pieces of text.

Each turn carries a marker, `bench-17`: the question names it, the answer begins with it, so that
times taken in different processes can be put together.
"""

import json
import re

from tests.fakes.model_server import EVENTS, Call, Round

WIRES = ("openai", "anthropic", "ollama")
MODEL = "bench-model"
TOOL = "core__get_logs"
RESULT_BYTES = 3_000
SYSTEM_BYTES = 6_000
ROUNDS = 3
CALLS = 4
PIECES = 500
_PLACEHOLDER = "bench-0"
_MARKER = re.compile(rb"bench-\d+")
_WHY = " why is checkout slow?"
_RECORD = b"</record>"  # the end of a request of `bot.chat.history`
_QUESTION = re.compile(rb"(bench-\d+)" + re.escape(_WHY.encode()))
_END = "END."


def _call(words: str) -> Call:
    # Of each turn its own, so that no result is remembered from the turn before. It is a piece of its own.
    query = f"#{_PLACEHOLDER} {words}"
    return Call(
        TOOL,
        {"product": "checkout", "query": query, "time_range": "last 30m", "level": "error"},
    )


def _words(number: int, last: str = "word. ") -> tuple[str, ...]:
    return (*(f"word{n % 9} " for n in range(number - 1)), last)


SCRIPT = (
    Round((f"{_PLACEHOLDER} ", *_words(49)), (_call("timeout"), _call("refused"))),
    Round(_words(50), (_call("pool exhausted"), _call("deadline"))),
    Round(_words(400, _END)),
)


def _numbered(at: int) -> list[tuple[str, str, str]]:
    calls = enumerate(SCRIPT[at].calls)
    return [(f"call_{at}_{n}", TOOL, json.dumps(call.arguments)) for n, call in calls]


_RAW = {
    wire: [EVENTS[wire](each, MODEL, _numbered(at)) for at, each in enumerate(SCRIPT)]
    for wire in WIRES
}


def question(number: int) -> str:
    """What a person asks."""
    return f"bench-{number}{_WHY}"


def answer(number: int) -> str:
    """The whole text of the turn as people read it at the end."""
    rounds = ["".join(each.text).strip() for each in SCRIPT]
    return "\n\n".join(rounds).replace(_PLACEHOLDER, f"bench-{number}", 1)


def is_whole(text: str) -> bool:
    """Whether a text is a complete answer to another question."""
    return text.rstrip().endswith(_END)


def marker_of(body: bytes) -> bytes:
    """The turn a request or a message belongs to; empty for none."""
    found = _MARKER.search(body)
    return found.group() if found else b""


def asked_by(body: bytes) -> tuple[bytes, int]:
    asked = [*_QUESTION.finditer(body)]
    if not asked or _RECORD in body:
        return b"", ROUNDS - 1
    last = asked[-1]
    over = body.count(b'"role":"assistant"', last.end())
    return last.group(1), min(over, ROUNDS - 1)


def events(wire: str, at: int, marker: bytes) -> list[bytes]:
    """The events of round `at`, from 0, of that turn."""
    own = _RAW[wire][at]
    return [e.replace(_PLACEHOLDER.encode(), marker, 1) if b"bench-" in e else e for e in own]


def event_count(wire: str) -> int:
    """Events of a whole turn, which at a pace is how long it takes at least."""
    return sum(len(each) for each in _RAW[wire])


def log_lines() -> list[str]:
    """What a tool call finds: about 3 KB of ordinary log text."""
    line = 'level=error request=%05d path=/cart/checkout status=503 msg="upstream pool exhausted after 5000 ms" host=checkout-%d'
    return [line % (n * 37, n % 3) for n in range(24)]
