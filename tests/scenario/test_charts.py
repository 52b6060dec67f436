"""Answers with charts, on the wire: in Slack's own streams and by edits, taken and refused."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bot.demo.workspace.timeline import Message
from bot.domain.turn_events import TextDelta, TurnFinished
from bot.slack.delivery.streams import StreamSetting
from tests.charted_results import COMPARE, answered, compared, result
from tests.scenario.test_native_streams import Slack, slack_with

WAYS: tuple[StreamSetting, ...] = ("native", "edit")
CHART = "data_visualization"
FINAL = answered(
    result(COMPARE, compared()),
    result(COMPARE, compared(unit="ratio"), call="n", metric_name="error_ratio"),
    says="p99 rose to 1.8 s [E1].\nErrors rose to 1.8 [E2].",
)


@asynccontextmanager
async def slack_without_charts(setting: StreamSetting) -> AsyncIterator[Slack]:
    async with slack_with(setting=setting, unknown_blocks=frozenset({CHART})) as slack:
        yield slack


async def answer(slack: Slack, final: TurnFinished = FINAL) -> Message:
    """A whole answer; the one message that shows it."""
    ask, stream = await slack.begun()
    stream.feed(TextDelta(final.text))
    await stream.finish(final)
    (message,) = slack.messages(ask)
    return message


def kinds(message: Message) -> list[Any]:
    """Of its blocks, without the cards of what was done, which only streams have."""
    return [block["type"] for block in message.blocks if block["type"] != "plan"]


@pytest.mark.parametrize("setting", WAYS)
async def test_an_answer_ends_with_one_chart_in_its_last_call(setting: StreamSetting) -> None:
    async with slack_with(setting=setting) as slack:
        message = await answer(slack)

        assert kinds(message)[:4] == ["markdown", CHART, "context", "actions"]
        assert [b["title"] for b in message.blocks if b["type"] == CHART] == [
            "E1 checkout: p99",
        ]
        ends = "chat.stopStream" if setting == "native" else "chat.update"
        assert sum(CHART in str(call.arguments) for call in slack.workspace.calls) == 1
        assert slack.workspace.calls[-1].method == ends
        assert slack.errors == []


@pytest.mark.parametrize("setting", WAYS)
async def test_of_three_charts_one_is_in_the_message_and_all_results_behind_evidence(
    setting: StreamSetting,
) -> None:
    names = ("p99", "error_ratio", "memory")
    final = answered(
        *(result(COMPARE, compared(), call=name, metric_name=name) for name in names),
        says="p99 rose to 1.8 s [E1].\nErrors rose to 1.8 [E2].\nMemory rose to 1.8 [E3].",
    )
    async with slack_with(setting=setting) as slack:
        message = await answer(slack, final)

        assert kinds(message).count(CHART) == 1
        assert kinds(message).count("actions") == 1
        assert "Evidence (3)" in str(message.blocks[-1])
        assert message.text.startswith("p99 rose to 1.8 s")


@pytest.mark.parametrize("setting", WAYS)
async def test_a_refused_chart_leaves_the_answer_unchanged_and_is_remembered(
    setting: StreamSetting,
) -> None:
    async with slack_without_charts(setting) as slack:
        first = await answer(slack)
        second = await answer(slack)

        assert kinds(first) == kinds(second)
        assert kinds(first)[:3] == ["markdown", "context", "actions"]
        assert CHART not in kinds(first)
        assert first.text == second.text
        assert first.blocks[-len(kinds(first))]["text"] == FINAL.text
        assert slack.errors == ["invalid_blocks"]
