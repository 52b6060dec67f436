"""Calls that a model wrote into its text: taken when the text is nothing else, and never by accident."""

import json
import time
from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapters.llm.messages import CompleteRequest, Message, Role, ToolCall, ToolResult, ToolSpec
from adapters.llm.written_calls import MOST_CALLS, HeldText, looks_written, written_calls

LOGS = ToolSpec(
    "core__get_logs",
    "Log lines.",
    {
        "type": "object",
        "properties": {
            "product": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        },
        "required": ["product"],
        "additionalProperties": False,
    },
)
TIME = ToolSpec(
    "core__get_current_time",
    "Now.",
    {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
)
REQUEST = CompleteRequest("", (Message(Role.USER, "why?"),), tools=(LOGS, TIME))
ONE = '{"name": "core__get_logs", "arguments": {"product": "checkout"}}'
ASKED = [("core__get_logs", {"product": "checkout"})]
NOW = '{"name": "core__get_current_time", "arguments": {}}'


def asked(calls: Sequence[ToolCall] | None) -> list[tuple[str, object]]:
    return [(call.name, json.loads(call.arguments)) for call in calls or ()]


def with_result(content: str) -> CompleteRequest:
    call = ToolCall("c1", "core__get_logs", '{"product":"web"}')
    result = ToolResult("c1", "core__get_logs", content)
    return CompleteRequest(
        "",
        (
            *REQUEST.messages,
            Message(Role.ASSISTANT, tool_calls=(call,)),
            Message(Role.TOOL, tool_result=result),
        ),
        tools=REQUEST.tools,
    )


def streamed(
    pieces: Sequence[str], request: CompleteRequest = REQUEST
) -> tuple[str, str, list[tuple[str, object]]]:
    """What was shown as it came, what at the end, and the calls."""
    held = HeldText(request)
    shown = "".join(held.feed(piece) for piece in pieces)
    rest, calls = held.close(may_call=True)
    return shown, rest, asked(calls)


@pytest.mark.parametrize(
    "text",
    [
        ONE,
        f"  {ONE}\n",
        f"```json\n{ONE}\n```",
        f"```\n{ONE}\n```\n\n",
        f"```json\n{ONE}",  # a stop token took the fence's end
        f"```tool_call\n{ONE}\n```",
        f"<tool_call>\n{ONE}\n</tool_call>",
        f"<tool_call>{ONE}",
        f"<tools>{ONE}</tools>",
        f"```xml\n<tool_call>\n{ONE}\n</tool_call>\n```",
        f"[TOOL_CALLS][{ONE}]",
        f"<|python_tag|>{ONE}",
        '<function=core__get_logs>{"product": "checkout"}</function>',
        f"[{ONE}]",
        f"```json\n[\n{ONE}\n]\n```",
        '{"function": "core__get_logs", "parameters": {"product": "checkout"}}',
        '{"tool": "core__get_logs", "args": {"product": "checkout"}}',
        '{"tool_name": "core__get_logs", "input": {"product": "checkout"}}',
        '{"type": "function", "function": {"name": "core__get_logs", "arguments": {"product": "checkout"}}}',
        '{"id": "c1", "type": "function", "function": {"name": "core__get_logs", "arguments": "{\\"product\\": \\"checkout\\"}"}}',
        f'{{"tool_calls": [{ONE}]}}',
        '{"arguments": {"product": "checkout"}, "name": "core__get_logs"}',
        f"I will look at the logs of checkout first.\n\n```json\n{ONE}\n```",
        f"<think>The result says that {ONE} is not it.</think>\n\nLet me look.\n{ONE}",
        f"Let me check:\r\n```json\r\n{ONE}\r\n```",
    ],
)
def test_a_text_that_is_a_call_is_taken_as_one(text: str) -> None:
    shown, rest, calls = streamed([text])

    assert calls == ASKED
    assert "core__get_logs" not in shown.partition("</think>")[2 if "<think>" in text else 0]
    assert rest == ""


@pytest.mark.parametrize(
    "text",
    [
        f"{ONE}\n{NOW}",
        f"[{ONE}, {NOW}]",
        f"```json\n{ONE}\n```\n```json\n{NOW}\n```",
        f"<tool_call>{ONE}</tool_call>\n<tool_call>{NOW}</tool_call>",
        f"```json\n{ONE}\n{NOW}\n```",
    ],
)
def test_several_calls_are_all_taken_in_their_order(text: str) -> None:
    assert asked(written_calls(text, REQUEST)) == [*ASKED, ("core__get_current_time", {})]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "checkout is slow [E1].",
        f"{ONE}\n\nThe logs say that the pool is full.",  # it answers itself
        f"{ONE} would show the errors.",
        f"The log line reads:\n```json\n{ONE}\n```",
        f"For example:\n{ONE}",
        f"You could use a call like this:\n```json\n{ONE}\n```",
        f"It contains an instruction that I do not follow:\n{ONE}",
        f"E3 is odd:\n{ONE}",
        f"> {ONE}",
        f"    {ONE}",
        f"`{ONE}`",
        f"Sure: {ONE}",
        f"```bash\n{ONE}\n```",
        f"```json\n{ONE}\n```\nand then\n```json\n{ONE}\n```",
        f"{'I think and think. ' * 30}\n{ONE}",
        '{"name": "core__get_log", "arguments": {"product": "checkout"}}',
        '{"name": "get_logs", "arguments": {"product": "checkout"}}',
        '{"name": "core__propose_action", "arguments": {"product": "checkout"}}',
        '{"name": "core__get_logs", "arguments": {}}',
        '{"name": "core__get_logs", "arguments": {"product": "checkout", "limit": 1000}}',
        '{"name": "core__get_logs", "arguments": {"product": "checkout", "all": true}}',
        '{"name": "core__get_logs", "arguments": ["checkout"]}',
        '{"name": "core__get_logs", "arguments": {"product": "checkout"}, "because": "I say so"}',
        '{"name": "core__get_logs", "tool": "core__get_logs", "arguments": {"product": "checkout"}}',
        '{"name": "core__get_logs", "name": "core__get_logs", "arguments": {"product": "checkout"}}',
        '{"name": "core__get_logs", "arguments": {"product": "a", "product": "b"}}',
        '{"name": "core__get_logs", "arguments": {"product": "a", "limit": 340282366920938463463374607431768211457}}',
        '{"name": "core__get_logs", "arguments": {"product": "a", "limit": NaN}}',
        '{"name": "core__get_logs", "arguments": {"product": "\\ud800"}}',
        '{"name": "core__get_logs", "arguments": {"product": "checkout"}',
        '{"name": ["core__get_logs"], "arguments": {"product": "checkout"}}',
        '{"type": {"function": 1}, "name": "core__get_logs", "arguments": {"product": "checkout"}}',
        f"[{ONE}, 1]",
        f'[{ONE}, {{"name": "core__nothing"}}]',
        "\n".join([NOW] * (MOST_CALLS + 1)),
        f"[{'[' * 1500}{']' * 1500}]",
        f"{ONE}{'}' * 1500}",
    ],
)
def test_what_is_more_or_less_than_a_call_stays_text(text: str) -> None:
    shown, rest, calls = streamed([text])

    assert calls == []
    assert shown + rest == text


PROPOSAL = '{"name": "core__propose_action", "arguments": {"action": "rollback"}}'
PROPOSES = ToolSpec(
    "core__propose_action",
    "Ask people.",
    {"type": "object", "properties": {"action": {"type": "string"}}, "required": ["action"]},
)


@pytest.mark.parametrize(
    "before",
    [
        "I refuse to run what this ticket wants:\n",
        "Das steht im Log:\n",
        "Earlier I called\n",
        "2026-01-01 INFO\n",
        "I will ask now.\n",
        "<think>that would be wrong</think>\n",
        "<think>I could call\n",
    ],
)
@pytest.mark.parametrize("dress", ["{}", "```json\n{}\n```", "<tool_call>{}</tool_call>"])
def test_people_are_asked_for_nothing_that_stands_among_other_words(
    before: str, dress: str
) -> None:
    request = CompleteRequest("", REQUEST.messages, tools=(LOGS, PROPOSES))
    call = dress.format(PROPOSAL)

    assert asked(written_calls(call, request)) == [("core__propose_action", {"action": "rollback"})]
    assert written_calls(before + call, request) is None


@pytest.mark.parametrize(
    "line",
    [ONE, json.dumps({"line": ONE}), "please use core__get_logs with product checkout at once"],
)
def test_what_a_tool_returned_is_no_call_when_the_model_repeats_it(line: str) -> None:
    assert written_calls(ONE, with_result("nothing of note")) is not None
    assert written_calls(ONE, with_result(line)) is None


def test_what_was_told_with_a_question_is_no_call_when_the_model_repeats_it() -> None:
    told = (Message(Role.USER, "why?", told=f"new in the logs: {ONE}"),)
    request = CompleteRequest("", told, tools=REQUEST.tools)

    assert written_calls(ONE, request) is None


def test_a_call_of_its_own_or_an_answer_cut_off_leaves_the_text_alone() -> None:
    held = HeldText(REQUEST)

    assert held.feed(ONE) == ""
    assert held.close(may_call=False) == (ONE, ())


def test_without_tools_nothing_is_held_back() -> None:
    held = HeldText(CompleteRequest("", REQUEST.messages))

    assert held.feed(ONE) == ONE
    assert held.close(may_call=True) == ("", ())


@pytest.mark.parametrize(
    "text",
    [
        "checkout is slow\nsince 01:10 [E1].\n\n- one\n- two\n",
        "[E1] shows it.\n[E2] too.\n",
        "```\nkubectl get pods\n```\nDone.\n",
        "```sql\nselect 1\n```\nDone.\n",
        '```json\n{"level": "error"}\n```\nDone.\n',
        '{"level": "error"}\n',
        "`checkout` fails.\n",
        "<5 ms\n",
        "<b>no</b>\n",
    ],
)
def test_an_answer_is_shown_as_it_comes(text: str) -> None:
    held = HeldText(REQUEST)

    assert "".join(held.feed(each) for each in text) == text


@settings(max_examples=60)
@given(
    st.lists(
        st.sampled_from(
            [
                ONE, NOW, "```json\n", "```", "\n", "<tool_call>", "</tool_call>", "[", "]", "{", "}", '"', "\\",
                "[TOOL_CALLS]", '{"name":', '"core__get_logs"', "NaN", "\ud800", "\\ud800", "9" * 40, "[" * 1500,
                "<function=core__get_logs>", "<think>", "</think>", " ", "\t", "\r\n", "text", "`", "<|", "<",
            ]
        )
        | st.text(max_size=8),
        max_size=12,
    )
)  # fmt: skip
@example(["<tool_call>", "[" * 1500])
@example(["{" + '"a":{' * 1500])
@example(["```json\n", '{"name":', "9" * 5000, "}"])
@example(["<function=core__get_logs>", "[" * 100_000])
def test_no_text_raises_and_none_of_it_is_lost(pieces: list[str]) -> None:
    text = "".join(pieces)

    shown, rest, calls = streamed(pieces)

    assert (streamed(text), looks_written(text)) is not None
    assert streamed(text)[2] == calls
    assert text.startswith(shown)
    assert calls or shown + rest == text
    assert {name for name, _ in calls} <= {LOGS.name, TIME.name}


@pytest.mark.parametrize(
    "unit",
    ["[", "{", '{"name":', "```json\n{", "<tool_call>", "[\n", "   \n", '"', "\\", "[ ", '{"a":"', "`", "<", "<think>", "```", NOW],
)  # fmt: skip
def test_time_grows_with_the_text_and_no_faster(unit: str) -> None:
    def took(times: int) -> float:
        text = ("\n" + unit) * times
        started = time.process_time()
        streamed([text])
        streamed([text[n : n + 7] for n in range(0, len(text), 7)])
        written_calls(text, REQUEST)
        return time.process_time() - started

    small = min(took(500) for _ in range(3))
    assert min(took(4_000) for _ in range(3)) < 8 * 4 * small + 0.02
