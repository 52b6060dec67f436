"""Two hundred alerts at once: some threads, fewer investigations, and a notice of the rest."""

import asyncio
from collections import Counter

import pytest
from pydantic import JsonValue

from bot.app.worker import Times
from bot.demo.workspace.seeds import CHECKOUT
from tests.fakes.alert_senders import SECRET
from tests.fixtures_service import shared_stage
from tests.scenario.test_alerts import alert, group, openings, send
from tests.stage import Stage, says, shown

__all__ = ["shared_stage"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

TIMES = Times(tick_s=0.1, gather_s=0.1)
SCRIPT = says("The pool is exhausted.")
SETTINGS: dict[str, JsonValue] = {
    "http": {"alertmanager_token": SECRET},
    "policy": {"alerts": {"threads_per_hour": 4, "investigations_per_hour": 2}},
    "alerts": [{"name": "all", "channel": CHECKOUT}],
}


async def test_an_alert_storm_is_grouped_limited_and_reported(shared_stage: Stage) -> None:
    stage = shared_stage
    sent = await asyncio.gather(*(send(stage, group(alert(f"P{n}"))) for n in range(200)))
    assert {status for status, _ in sent} == {200}

    await stage.workspace.wait_for(lambda: openings(stage, "196 alerts firing"), 20.0)
    await stage.workspace.wait_for(lambda: len(stage.models.requests) == 2, 20.0)

    threads = [shown(each) for each in openings(stage, "Alert rule all")]
    said = Counter("Not investigated: alerts may start 2" in each for each in threads)
    assert said == {True: 3, False: 2}
    (rest,) = [each for each in threads if "Too many alerts for new threads" in each]
    assert "and 186 more" in rest
    assert len(stage.models.requests) == 2
