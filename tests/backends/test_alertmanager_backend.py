"""A real Alertmanager sends alerts: one thread an incident, with its repeats and its end."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest

from bot.app.worker import Times
from bot.demo.workspace.seeds import CHECKOUT
from bot.demo.workspace.timeline import Message
from tests.backends.metric_servers import binary, free_port, running
from tests.fixtures_service import on_stage
from tests.stage import Asked, Stage, says, shown

pytestmark = [pytest.mark.backends, pytest.mark.may_block_the_loop]

TOKEN = "a token that Alertmanager has"
SETTINGS = {
    "http": {"alertmanager_token": TOKEN},
    "alerts": [{"name": "all", "channel": CHECKOUT}],
}
CONFIG = """
route:
  receiver: kortex
  group_by: [alertname]
  group_wait: 100ms
  group_interval: 300ms
  repeat_interval: 300ms
receivers:
  - name: kortex
    webhook_configs:
      - url: http://127.0.0.1:{port}/alerts/v1/alertmanager
        http_config:
          authorization:
            credentials: {token}
"""


@contextmanager
def alertmanager(folder: Path, port: int) -> Iterator[str]:
    config = folder / "alertmanager.yml"
    config.write_text(CONFIG.format(port=port, token=TOKEN))
    own = f"127.0.0.1:{free_port()}"
    command = [
        binary("prometheus-alertmanager"),
        f"--config.file={config}",
        f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address={own}",
        "--cluster.listen-address=",
    ]
    with running(command, f"http://{own}/-/ready", folder / "alertmanager.log"):
        yield f"http://{own}"


async def send_alerts(url: str, *names: str, ended: bool = False) -> None:
    now = datetime.now(UTC)
    alerts = [
        {
            "labels": {"alertname": "Latency", "service": "checkout", "instance": name},
            "annotations": {"summary": "p99 of checkout is above 1 s"},
            "startsAt": (now - timedelta(minutes=5)).isoformat(),
            "endsAt": (
                now - timedelta(seconds=1) if ended else now + timedelta(minutes=5)
            ).isoformat(),
        }
        for name in names
    ]
    sent = f"{url}/api/v2/alerts"
    async with aiohttp.ClientSession() as http, http.post(sent, json=alerts) as answer:
        assert answer.status == 200, await answer.text()


def openings(stage: Stage) -> list[Message]:
    bot = stage.workspace.app.bot_user_id
    return [m for m in stage.workspace.messages(CHECKOUT) if m.user == bot and not m.thread_ts]


async def test_an_alert_opens_one_thread_counts_repeats_and_resolves(tmp_path: Path) -> None:
    times = Times(tick_s=0.2, gather_s=0.2)
    script = says("The pool is exhausted.")
    async with on_stage(tmp_path, script, SETTINGS, times=times) as bot:
        with alertmanager(tmp_path, bot.service.http_port) as url:
            await send_alerts(url, "web-1", "web-2")
            (opened,) = await bot.workspace.wait_for(lambda: openings(bot), 20.0)
            asked = Asked(CHECKOUT, opened.ts, opened.ts)
            assert "The pool is exhausted." in await bot.answer(asked)
            await bot.workspace.wait_for(lambda: "Repeated" in shown(openings(bot)[0]), 20.0)

            await send_alerts(url, "web-1", "web-2", ended=True)

            assert "All 2 alerts are resolved" in await bot.note(asked, "resolved since")
    assert len(openings(bot)) == 1
    assert bot.query("SELECT count(*) FROM turns") == [(1,)]
