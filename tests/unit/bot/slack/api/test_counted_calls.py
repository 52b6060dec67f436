"""Edits and 429s are counted; answers and errors pass through."""

from collections.abc import Mapping

import pytest
from pydantic import JsonValue

from bot.slack.api.calls import WatchedCalls
from bot.slack.api.web_api import RateLimited
from bot.telemetry.metrics import Metrics


class _Api:
    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    async def call(self, method: str, **args: JsonValue) -> Mapping[str, JsonValue]:
        if self.error is not None:
            raise self.error
        return {"ok": True, "method": method}


def _count(metrics: Metrics, name: str) -> float | None:
    return metrics.registry.get_sample_value(name)


async def test_an_edit_is_counted_and_other_calls_are_not() -> None:
    metrics = Metrics()
    calls = WatchedCalls(_Api(), metrics)

    assert await calls.call("chat.update", ts="1") == {"ok": True, "method": "chat.update"}
    await calls.call("chat.postMessage")

    assert _count(metrics, "kortex_slack_edits_total") == 1


async def test_a_refused_edit_counts_as_a_429_and_not_as_an_edit() -> None:
    metrics = Metrics()
    calls = WatchedCalls(_Api(RateLimited("chat.update", 3.0)), metrics)

    with pytest.raises(RateLimited):
        await calls.call("chat.update")

    assert _count(metrics, "kortex_slack_rate_limited_total") == 1
    assert _count(metrics, "kortex_slack_edits_total") == 0
