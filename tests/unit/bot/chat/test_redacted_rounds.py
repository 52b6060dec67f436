"""A request to a model holds no secret, in any round after the secret was learned."""

import threading
from collections import Counter
from collections.abc import Sequence

import pytest

from adapters.llm.messages import CompleteRequest, Message, Role, ToolCall, ToolResult
from bot.chat.redacted_rounds import RedactedRounds
from bot.chat.stopping import Signal
from bot.ports.durability import StopSignal
from bot.privacy.redactor import TextRedactor
from bot.privacy.session_memory import Placeholders
from tests.fakes.scripted_provider import ScriptedProvider, text
from tests.fixtures_rounds import unlimited
from tools.redactor import Redacted

SECRET = "dipPr179Gg7x"
QUESTION = Message(Role.USER, f"why does {SECRET} show up in the log?")
CALL = Message(Role.ASSISTANT, tool_calls=(ToolCall("c1", "core__get_logs", "{}"),))
TELLING = Message(
    Role.TOOL, tool_result=ToolResult("c1", "core__get_logs", f'{{"line": "password={SECRET}"}}')
)
QUIET = Message(Role.TOOL, tool_result=ToolResult("c1", "core__get_logs", '{"line": "fine"}'))


class Counting(TextRedactor):
    """How often each text was redacted."""

    def __init__(self) -> None:
        super().__init__([], b"key")
        self.asked: Counter[str] = Counter()

    def redact(self, text: str) -> Redacted:
        self.asked[text] += 1
        return super().redact(text)


@pytest.fixture
def redactor() -> Counting:
    return Counting()


async def sent(
    redactor: TextRedactor, stops: Sequence[StopSignal], *rounds: Sequence[Message]
) -> list[str]:
    """What the model was sent in each round, as one text."""
    provider = ScriptedProvider([text("said")] * len(rounds))
    asked = RedactedRounds([provider], redactor)
    with Placeholders().within("a thread"):
        for stop, messages in zip(stops, rounds, strict=True):
            request = CompleteRequest(system="s", messages=tuple(messages))
            await asked.run(request, 1, lambda _: None, stop, budget=unlimited())
    return [repr(each.messages) for each in provider.requests]


async def test_a_secret_revealed_later_is_masked_in_earlier_messages(
    redactor: Counting,
) -> None:
    stop = Signal()
    first, second, third = await sent(
        redactor,
        [stop] * 3,
        [QUESTION],
        [QUESTION, CALL, TELLING],
        [QUESTION, CALL, TELLING],
    )

    assert SECRET in first  # nothing shows yet that it is one
    assert SECRET not in second.replace(repr(QUESTION), "")
    assert SECRET not in third


async def test_a_clean_message_is_not_searched_again_in_the_turns_next_round(
    redactor: Counting,
) -> None:
    stop = Signal()

    await sent(redactor, [stop] * 2, [QUESTION], [QUESTION, CALL, QUIET])

    assert redactor.asked[QUESTION.text] == 1
    assert sum(count for text, count in redactor.asked.items() if "fine" in text) == 1


async def test_another_turn_searches_every_message_again(redactor: Counting) -> None:
    await sent(redactor, [Signal(), Signal()], [QUESTION], [QUESTION])

    assert redactor.asked[QUESTION.text] == 2


async def test_a_masked_secret_is_masked_in_each_round(redactor: Counting) -> None:
    stop = Signal()
    rounds = await sent(redactor, [stop] * 3, *[[CALL, TELLING, QUESTION]] * 3)

    assert all(SECRET not in each for each in rounds)


async def test_a_long_question_is_redacted_off_the_loop() -> None:
    long = "\n".join(f'{{"user": "ann{n}@example.com", "n": {n}}}' for n in range(900))
    threads: dict[str, int] = {}

    class Noting(TextRedactor):
        def redact(self, text: str) -> Redacted:
            threads[text] = threading.get_ident()
            return super().redact(text)

    (told,) = await sent(Noting([], b"key"), [Signal()], [Message(Role.USER, long), QUESTION])

    assert "example.com" not in told
    assert threads[long] != threading.get_ident()
