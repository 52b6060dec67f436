"""The triage over the recorded incidents through the real tools: right, grounded, within its rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from adapters.observe.cursor import UnsealedCodec
from adapters.recorded.simulator.history import RecordedHistory, past_incidents, recorded_pages
from adapters.recorded.simulator.incidents import RecordedIncidents
from tests.fakes.capabilities import FakeClock, FakeProposals, call_context
from tests.fakes.redactor import FakeRedactor
from tests.fixtures_triage import (
    MOST_ROUNDS,
    TOOLS,
    Investigation,
    behind_evidence,
    investigate,
)
from tools.capabilities import Capabilities, LogLine, Logs, LogSweepQuery, SweptLogs
from tools.catalog import ToolCatalog
from tools.core.all import core_tools
from tools.cursor import CursorSigner
from tools.policy import ToolPolicy
from tools.runner import ToolRunner

NOW = datetime(2026, 4, 7, 14, 35, 20, tzinfo=UTC)
PRODUCTS = (
    "checkout", "web", "gateway", "cart", "catalog", "pricing", "inventory", "payments",
    "payments-db", "orders-db", "recommendations", "shipping",
)  # fmt: skip
CONNECTIONS = frozenset({"platform:everybody"})
PHRASINGS = [
    "why is checkout slow?",
    "checkout p99 is 3000 ms, what happened?",
    "payments?",
    "what is going on",
    "Is the WEB broken since the last deploy??",
    "",
]


CLOCK = FakeClock(NOW)
RECORDED = RecordedIncidents(CLOCK, UnsealedCodec())  # a day of lines is computed once


class MoreLines:
    """A log with lines of one product more; sweeps alone see them."""

    def __init__(self, logs: Logs, product: str, lines: Sequence[LogLine]) -> None:
        self._logs, self._product, self._lines = logs, product, lines
        self.query, self.discover = logs.query, logs.discover

    async def count(self, queries: Sequence[LogSweepQuery]) -> Sequence[Mapping[str, int]]:
        """As the Logs port says."""
        return [(await self.sweep(query)).counts for query in queries]

    async def sweep(self, query: LogSweepQuery) -> SweptLogs:
        """As the Logs port says."""
        found = await self._logs.sweep(query)
        start, end = (at.timestamp() * 1e9 for at in (query.interval.start, query.interval.end))
        more = [one for one in self._lines if start <= one.ts_ns < end]
        own = [*found.lines.get(self._product, ()), *more]
        number = found.counts.get(self._product, 0) + len(more)
        ordered = sorted(own, key=lambda one: -one.ts_ns)
        return replace(
            found,
            lines={**found.lines, self._product: ordered},
            counts={**found.counts, self._product: number},
        )


async def look_into(
    channel: str,
    question: str,
    product: str = "checkout",
    lines: Sequence[LogLine] = (),
    incidents: RecordedIncidents = RECORDED,
    clock: FakeClock = CLOCK,
) -> Investigation:
    """Ask in that channel, every call through the runner; `lines` of a product are there as well."""
    recorded = incidents.look(incidents.name_in(channel) or "")
    capabilities = Capabilities(
        clock=clock,
        logs=MoreLines(recorded.logs, product, lines),
        metrics=recorded.metrics,
        traces=recorded.traces,
        deploys=recorded.deploys,
        proposals=FakeProposals(),
        kubernetes=recorded.kubernetes,
        platform=recorded.platform,
        incidents=RecordedHistory(past_incidents(NOW)),
        patterns=recorded_pages(),
    )
    policy = ToolPolicy(toolsets={"investigate": TOOLS}, granted_connections=CONNECTIONS)
    catalog = ToolCatalog(core_tools(CursorSigner(b"k" * 32)), policy, capabilities)
    runner = ToolRunner(catalog, policy, capabilities, FakeRedactor(), clock)

    async def answer(name: str, arguments: Mapping[str, Any]) -> object:
        text = orjson.dumps(dict(arguments)).decode()
        context = call_context(now=clock.now(), products=PRODUCTS, connection_ids=CONNECTIONS)
        outcome = await runner.run("call1", name, text, context, lambda _: None)
        return orjson.loads(outcome.content) if outcome.record.ok else LookupError("failed")

    return await investigate(answer, question, PRODUCTS, now=clock.now())


@pytest.mark.parametrize("question", PHRASINGS)
@pytest.mark.parametrize("channel", ["incident-checkout", "incident-payments", "incident-quiet"])
async def test_every_figure_and_citation_comes_from_a_tool(channel: str, question: str) -> None:
    found = await look_into(channel, question)

    assert found.marks == ()
    assert found.cited
    assert found.rounds <= MOST_ROUNDS


@pytest.mark.parametrize("question", [each for each in PHRASINGS if each != "payments?"])
async def test_the_bad_deploy_is_found_and_its_rollback_proposed(question: str) -> None:
    found = await look_into("incident-checkout", question)

    assert "**Most likely cause: the deploy of checkout v2.4.0" in found.text
    assert "not the cause: the deploy of recommendations v1.19.3" in behind_evidence(found)
    (proposed,) = found.asked("core__propose_action")
    assert (proposed["product"], proposed["params"]) == ("checkout", {"version": "v2.3.7"})


async def test_another_products_bad_deploy_is_reported_and_not_proposed_for_a_calm_one() -> None:
    found = await look_into("incident-checkout", "payments?")

    assert found.text.startswith(
        "You asked about payments: its cpu, errors, latency, memory, traffic are"
    )
    assert "Elsewhere, most likely cause: the deploy of checkout v2.4.0" in found.text
    assert found.asked("core__propose_action") == []


@pytest.mark.parametrize("question", PHRASINGS)
async def test_the_saturated_database_is_found_and_nothing_is_proposed(question: str) -> None:
    found = await look_into("incident-payments", question)

    assert "**Most likely cause: payments-db is saturated" in found.text
    assert found.asked("core__propose_action") == []


@pytest.mark.parametrize("question", PHRASINGS)
async def test_a_quiet_day_has_no_suspect(question: str) -> None:
    found = await look_into("incident-quiet", question)

    assert found.text.startswith("**Nothing is wrong with")
    assert found.asked("core__propose_action") == []


@pytest.mark.parametrize(
    ("number", "product"),
    [(1, "checkout"), (2, "payments-db"), (11, "checkout"), (11, "orders-db"), (50, "pricing")],
)
async def test_a_quiet_day_with_new_errors_is_not_an_all_clear(number: int, product: str) -> None:
    at = [(NOW - timedelta(seconds=20 + n * 1500 / number)).timestamp() for n in range(number)]
    lines = [LogLine(int(s * 1e9), "error", "h1", f"ledger {s:.0f} out of step") for s in at]
    found = await look_into("incident-quiet", "is checkout fine?", product, lines)

    (stated,) = found.asked("core__report_findings")
    assert stated["verdict"] != "healthy"
    assert f"{number} new error line" in found.text
    assert found.marks == ()


async def test_daily_errors_keep_a_quiet_day_quiet() -> None:
    hours = [(NOW - timedelta(hours=n)).timestamp() - 60 for n in range(24)]
    lines = [LogLine(int(s * 1e9), "error", "h1", f"ledger {s:.0f} out of step") for s in hours]
    found = await look_into("incident-quiet", "is checkout fine?", "checkout", lines)

    assert found.text.startswith("**Nothing is wrong with")


async def test_the_context_of_a_cause_is_reported_most_helpful_first() -> None:
    deployed = await look_into("incident-checkout", "why is checkout slow?")
    saturated = await look_into("incident-payments", "why is checkout slow?")
    quiet = await look_into("incident-quiet", "why is checkout slow?")

    assert '"checkout p99 above 2 s after release v2.2.0"' in deployed.text
    for words in (
        "checkout: all 3 pods are running [E",
        "Runbook: Checkout is slow or times out, section After a release [E",
    ):
        assert words in behind_evidence(deployed)
    for found in (deployed, saturated, quiet):
        assert found.text.count("\n- ") <= 5
        assert len(list(filter(str.strip, found.text.splitlines()))) <= 9
    assert '"payments failing connection pool exhausted"' in saturated.text
    assert "Runbook: Connection pool exhausted" in behind_evidence(saturated)
    assert "checkout: all 3 pods are running [E" in behind_evidence(quiet)
    assert "seen before" not in quiet.text
