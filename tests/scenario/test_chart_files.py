"""Charts as pictures in the thread, where the workspace refuses them as blocks; on the wire."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError

from bot.demo.workspace.seeds import CHECKOUT
from bot.domain.chart import Chart, Line
from bot.domain.session import Ask
from bot.slack.delivery.chart_files import ChartFiles, uploader
from bot.slack.delivery.outbox import Outbox
from bot.slack.delivery.streams import StreamSetting
from bot.slack.views.charts import described
from tests.charted_results import BEGIN, COMPARE, answered, compared, result
from tests.fixtures_workspace import served, web_client
from tests.scenario.test_native_streams import Slack, slack_with
from tests.slack_request_gate import SlackRequestGate

CHART = "data_visualization"
FINAL = answered(result(COMPARE, compared()), says="p99 rose to 1.8 s [E1].")


def paint(chart: Chart) -> bytes:
    return f"PNG of {chart.product} {chart.metric}".encode()


@asynccontextmanager
async def picturing(
    setting: StreamSetting,
    unknown: frozenset[str] = frozenset({CHART}),
    draw: Callable[[Chart], bytes] = paint,
) -> AsyncIterator[Slack]:
    async with (
        slack_with(setting=setting, unknown_blocks=unknown) as slack,
        aiohttp.ClientSession() as session,
    ):

        def files(outbox: Outbox) -> ChartFiles:
            return ChartFiles(slack.api, outbox, draw, described, uploader(session))

        slack.surface = slack.another_process(files=files)
        yield slack


async def answer(slack: Slack) -> Ask:
    ask, stream = await slack.begun()
    await stream.finish(FINAL)
    return ask


def pictures(slack: Slack, ask: Ask) -> list[bytes]:
    """The files in the thread, as they came."""
    stored = slack.workspace.files.stored
    shared = [each for message in slack.messages(ask) for each in message.files]
    return [stored[str(each["id"])].upload.content for each in shared]


@pytest.mark.parametrize("setting", ["native", "edit"])
async def test_a_workspace_without_charts_gets_them_as_files_in_the_thread(
    setting: StreamSetting,
) -> None:
    async with picturing(setting) as slack:
        ask = await answer(slack)

        assert pictures(slack, ask) == [b"PNG of checkout p99"]
        assert slack.texts(ask)[0] == FINAL.text
        asked = [c for c in slack.workspace.calls if c.method == "files.getUploadURLExternal"]
        assert "checkout from 0.2 to 1.6" in str(asked[0].arguments["alt_txt"])
        assert slack.errors == ["invalid_blocks"]


async def test_a_workspace_with_charts_gets_no_files() -> None:
    async with picturing("edit", unknown=frozenset()) as slack:
        ask = await answer(slack)

        assert pictures(slack, ask) == []
        assert slack.called("files.getUploadURLExternal") == 0


async def test_a_repeated_final_event_uploads_no_picture_twice() -> None:
    async with picturing("edit") as slack:
        ask = await answer(slack)
        again = slack.surface.stream(ask, await slack.surface.open_answer(ask))
        await again.finish(FINAL)

        assert len(pictures(slack, ask)) == 1


async def test_a_repeated_message_uploads_its_picture_once() -> None:
    async with picturing("edit") as slack:
        ask = await answer(slack)
        points = tuple((BEGIN + timedelta(minutes=n), 1.0) for n in range(3))
        chart = Chart(0, "checkout", "error_ratio", "", (Line("checkout", points),))
        for _ in range(2):
            await slack.surface.say(ask.place, "it helped", "p_1:effect", [chart])

        assert pictures(slack, ask)[1:] == [b"PNG of checkout error_ratio"]


def broken(_chart: Chart) -> bytes:
    raise ValueError("cannot be drawn")


async def test_a_failed_chart_does_not_affect_the_answer() -> None:
    async with picturing("edit", draw=broken) as slack:
        ask = await answer(slack)

        assert pictures(slack, ask) == []
        assert slack.texts(ask) == [FINAL.text]


async def test_an_app_without_upload_permission_stops_trying() -> None:
    async with picturing("edit") as slack:
        refused = {"files.getUploadURLExternal": "missing_scope"}
        slack.workspace.request_gate = SlackRequestGate(refused=refused, unknown_blocks={CHART})
        await answer(slack)
        await answer(slack)

        assert slack.called("files.getUploadURLExternal") == 1


async def test_a_workspace_accepts_only_an_announced_upload() -> None:
    async with (
        served() as workspace,
        aiohttp.ClientSession() as session,
        web_client(workspace) as client,
    ):
        told = await client.api_call(
            "files.getUploadURLExternal",
            http_verb="GET",
            params={"filename": "a.png", "length": "3"},
        )
        shares = {"files": [{"id": told["file_id"]}], "channel_id": CHECKOUT}
        with pytest.raises(SlackApiError, match="file_not_found"):
            await client.api_call("files.completeUploadExternal", json=shares)
        async with session.post(told["upload_url"], data=b"four") as refused:
            assert refused.status == 400
        async with session.post(told["upload_url"], data=b"abc") as taken:
            assert taken.status == 200
        await client.api_call("files.completeUploadExternal", json=shares)

        assert [f["name"] for m in workspace.messages(CHECKOUT) for f in m.files] == ["a.png"]
