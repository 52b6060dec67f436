"""`/kortex chart`: an immediate reply, then the chart for the asker, recorded, never for outsiders."""

import asyncio
import json
from dataclasses import replace

import pytest

from bot.domain.audit import AuditKind
from bot.domain.chart import Chart
from bot.domain.chart_request import Charted, ChartRequest
from bot.ports.failures import StorageUnavailable
from bot.slack.ingress.payloads import SlashCommand
from bot.slack.listeners import replies
from bot.slack.listeners.commands import ChartCommand
from bot.slack.listeners.message_intake import AskLimiter
from tests.slack_ingress import Ingress, command

DRAWN = Charted("**checkout**: p99 9.0x baseline", Chart(0, "checkout", "p99", "s", ()))


async def ask(ingress: Ingress, text: str, **fields: str) -> str:
    answer = json.loads((await ingress.send(command(text, **fields))).body)
    assert answer["response_type"] == "ephemeral"
    return str(answer["text"])


async def test_the_chart_is_shown_only_to_the_asker_and_audited() -> None:
    ingress = Ingress()
    ingress.charted = DRAWN
    answer = await ask(ingress, "CHART p99 checkout now-2h .. now", user_id="U2")

    (request,) = ingress.chart_requests
    (row,) = ingress.memory.audit_log
    assert "p99 of checkout" in answer
    assert (request.metric, request.product, request.time_range) == (
        "p99",
        "checkout",
        "now-2h .. now",
    )
    assert ingress.whispers.said == [(request.place, "U2", DRAWN.text)]
    assert ingress.whispers.charts == [DRAWN.chart]
    assert (row.kind, row.actor, row.body["command"]) == (AuditKind.ADMIN_COMMAND, "U2", "chart")


async def test_without_a_range_the_chart_covers_the_last_hour() -> None:
    ingress = Ingress()
    await ask(ingress, "chart p99 checkout")

    assert ingress.chart_requests[0].time_range == "last 1h"


@pytest.mark.parametrize(
    ("typed", "product"),
    [
        ("<http://checkout.io|checkout.io>", "checkout.io"),
        ("<http://10.0.0.1:9090|10.0.0.1:9090>", "10.0.0.1:9090"),
        ("<mailto:ana@acme.test|ana@acme.test>", "ana@acme.test"),
        ("R&amp;D", "R&D"),
    ],
)
async def test_a_product_that_slack_made_a_link_of_is_charted_by_its_name(
    typed: str, product: str
) -> None:
    ingress = Ingress()
    await ask(ingress, f"chart p99 {typed} 2h")

    (request,) = ingress.chart_requests
    assert (request.product, request.time_range) == (product, "2h")


@pytest.mark.parametrize("text", ["chart", "chart p99", "chart   "])
async def test_an_incomplete_command_gets_the_usage(text: str) -> None:
    ingress = Ingress()

    assert await ask(ingress, text) == replies.CHART_USAGE
    assert ingress.chart_requests == []


async def test_outsiders_get_no_chart_and_the_attempt_is_audited() -> None:
    ingress = Ingress()
    ingress.roles.outsiders = {"U2": "Guests can't."}
    answer = await ask(ingress, "chart p99 checkout", user_id="U2")

    assert answer == "Guests can't."
    assert ingress.chart_requests == []
    assert ingress.memory.audit_log[0].body["allowed"] is False


async def test_echoed_text_is_inert() -> None:
    answer = await ask(Ingress(), "chart <!channel> *<@U1>*")

    assert "<!channel>" not in answer
    assert "<@U1>" not in answer


async def test_a_failure_is_reported() -> None:
    ingress = Ingress()
    ingress.charted = StorageUnavailable("gone")
    await ask(ingress, "chart p99 checkout")

    assert ingress.whispers.texts == [replies.CANNOT_READ]


async def test_silent_metrics_time_out() -> None:
    ingress = Ingress()

    async def never(_request: ChartRequest) -> Charted:
        await asyncio.Event().wait()
        return DRAWN

    ports = replace(ingress.ports, chart=never)
    charts = ChartCommand(ports, ingress.background, patience_s=0.01)
    await charts.answer(SlashCommand.model_validate(command("chart p99 checkout")))
    await ingress.background.drain(1.0)

    assert ingress.whispers.texts == [replies.CHART_TOO_SLOW]


async def test_the_number_of_chart_requests_is_limited() -> None:
    ingress = Ingress()
    limiter = AskLimiter(2, 60.0, lambda: ingress.now)
    charts = ChartCommand(ingress.ports, ingress.background, limiter)
    payloads = [command("chart p99 checkout", trigger_id=f"t{n}") for n in range(3)]
    said = [await charts.answer(SlashCommand.model_validate(each)) for each in payloads]
    await ingress.background.drain(1.0)

    assert said[2] == replies.TOO_MANY_CHARTS
    assert len(ingress.chart_requests) == 2
