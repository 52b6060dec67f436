"""`/kortex chart` of a whole bot: read by the channel's own tools, shown to one person."""

import re
from typing import Any

import pytest

from bot.demo.workspace.seeds import CHECKOUT, GUEST, RESPONDER
from bot.demo.workspace.timeline import Message
from bot.slack.listeners import replies
from tests.fixtures_service import Start, stage
from tests.stage import WAIT_S, Stage, says

__all__ = ["stage"]

P99 = "http_request_duration_seconds_p99"


async def asked(running: Stage, text: str, user: str = RESPONDER) -> Message:
    before = len(running.workspace.whispers(user))
    await running.workspace.command(user, CHECKOUT, text)
    # The answer at once, then what was read.
    return await running.workspace.wait_for(
        lambda: found[-1] if len(found := running.workspace.whispers(user)) >= before + 2 else None,
        WAIT_S,
    )


def charts(message: Message) -> list[Any]:
    return [block for block in message.blocks if block["type"] == "data_visualization"]


async def test_a_chart_shows_the_baseline_and_its_tools_are_audited(
    stage: Start,
) -> None:
    async with stage(says("unasked")) as running:
        message = await asked(running, f"chart {P99} checkout last 1h")

        (chart,) = charts(message)
        assert chart["title"] == f"checkout: {P99}"
        assert {each["name"] for each in chart["chart"]["series"]} == {"checkout", "usual (median)"}
        assert len(chart["chart"]["axis_config"]["categories"]) == 20
        rows = running.query("select body from audit where kind = 'tool.call'")
        assert any("compare_to_baseline" in str(body) for body in rows)
        assert running.models.requests == []


@pytest.mark.parametrize("hint", re.findall(r"`(chart p[^`<]+)`", replies.COMMAND_HELP))
@pytest.mark.parametrize("metric", ["p99_latency", "p99", "latency", "errors"])
async def test_the_example_of_a_hint_works_as_typed_and_with_other_words(
    stage: Start, hint: str, metric: str
) -> None:
    async with stage(says("unasked")) as running:
        message = await asked(running, hint.replace("p99_latency", metric))

        assert len(charts(message)) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"chart {P99} orders-db last 1h", "No chart: "),
        ("chart p42 checkout", "There are: `http_requests_per_second`"),
        (f"chart {P99} checkout last 3 months", "No chart: time_range: "),
    ],
    ids=["not this channel's", "no such metric", "no such range"],
)
async def test_a_metric_that_cannot_be_charted_is_refused_with_the_reason(
    stage: Start, text: str, told: str
) -> None:
    async with stage(says("unasked")) as running:
        message = await asked(running, text)

        assert told in message.text
        assert charts(message) == []


async def test_a_guests_chart_is_refused_at_once_and_reads_nothing(stage: Start) -> None:
    async with stage(says("unasked")) as running:
        await running.workspace.command(GUEST, CHECKOUT, f"chart {P99} checkout")
        (said,) = await running.workspace.wait_for(lambda: running.whispers(GUEST), WAIT_S)

        assert "will see the chart here" not in said
        assert running.query("select body from audit where kind = 'tool.call'") == []
