"""Alerts and dashboards ask for metrics that exist, by labels that they have; each alert is explained."""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from adapters.llm.messages import Usage
from bot.telemetry.levels import Levels
from bot.telemetry.metrics import Metrics
from tests.sources import ROOT
from tools.records import ToolInvocationRecord

ALERTS = [
    rule
    for group in yaml.safe_load((ROOT / "deploy/alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]
BOARDS = sorted((ROOT / "deploy/grafana").glob("*.json"))
RUNBOOK = (ROOT / "docs/runbook.md").read_text(encoding="utf-8")
# Added by the scraper; `le` by the format.
SCRAPED = {"job", "instance", "le"}
CALL = ToolInvocationRecord(
    "c", "t", {}, True, None, "", datetime.now(UTC), datetime.now(UTC), 0, truncated=False
)


def exposed() -> dict[str, set[str]]:
    """The labels of each sample that a process shows once everything has happened."""
    metrics = Metrics()
    metrics.turn_ended("failed")
    metrics.round_ended("p", "end_turn")
    metrics.model_asked("p", 1.0, Usage())
    metrics.fallback("provider")
    metrics.tool_called(CALL)
    metrics.tool_broke("t")
    metrics.job_failed("expiry")
    metrics.proposal_became("pending")
    metrics.alerts_received("grafana", "taken", 1)
    metrics.alert_thread("opened")
    metrics.spent("p", 1)
    levels = Levels(metrics.registry)
    levels.providers({"p": True})
    levels.slack_connected(True)
    levels.audit_behind("log", 1, 1.0)
    levels.proposals_stuck({"expired": 1.0})
    return {
        sample.name: set(sample.labels)
        for family in metrics.registry.collect()
        for sample in family.samples
    }


def expressions() -> Iterator[tuple[str, str]]:
    for rule in ALERTS:
        yield rule["alert"], rule["expr"]
    for board in BOARDS:
        for panel in json.loads(board.read_text())["panels"]:
            for target in panel["targets"]:
                yield panel["title"], target["expr"]


def names_in(text: str) -> Sequence[str]:
    return re.findall(r"\b(?:kortex|process)_\w+", text)


def labels_in(text: str) -> set[str]:
    grouped = [each for by in re.findall(r"\bby \(([^)]*)\)", text) for each in by.split(",")]
    return {*map(str.strip, grouped), *re.findall(r'(\w+)\s*(?:=~|!=|=)\s*"', text)}


@pytest.mark.parametrize(("what", "text"), list(expressions()))
def test_queried_metrics_exist(what: str, text: str) -> None:
    shown = exposed()
    named = names_in(text)

    assert named, what
    assert [name for name in named if name not in shown] == []
    assert labels_in(text) <= SCRAPED.union(*(shown[name] for name in named))


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: str(rule["alert"]))
def test_each_alert_names_a_section_with_meaning_and_remedy(
    rule: dict[str, Any],
) -> None:
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    sections = {_anchor(each): each for each in re.split(r"^## ", RUNBOOK, flags=re.MULTILINE)[1:]}

    assert page == "docs/runbook.md"
    assert re.findall(r"^\*\*([\w ]+)\.\*\*", sections[anchor], re.MULTILINE) == [
        "Symptom",
        "Meaning",
        "Look at",
        "Do",
    ]
    assert rule["labels"]["severity"] in ("page", "ticket")


def _anchor(section: str) -> str:
    return section.splitlines()[0].strip().lower().replace(" ", "-")


def test_a_bug_in_a_tool_pages() -> None:
    (rule,) = [each for each in ALERTS if "kortex_tool_bugs_total" in each["expr"]]

    assert rule["labels"]["severity"] == "page"
    assert "for" not in rule


def test_every_alert_is_tested_by_promtool() -> None:
    tried = (ROOT / "deploy/alerts.test.yaml").read_text()

    assert [r["alert"] for r in ALERTS if f"alertname: {r['alert']}\n" not in tried] == []
