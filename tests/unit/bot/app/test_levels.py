"""Levels show the state, and nothing for unreadable values."""

from types import SimpleNamespace
from typing import cast

import pytest

from bot.app.audit import sinks_of
from bot.app.build import Base
from bot.app.due_jobs import LevelsLook
from bot.chat.rounds import Rounds
from bot.ports.failures import StorageUnavailable
from bot.settings.model import AuditSettings, Settings
from bot.slack.api.calls import WatchedCalls
from bot.store.levels import StoredLevels
from bot.telemetry.levels import Levels
from bot.telemetry.metrics import Metrics
from tests.fakes.scripted_provider import ScriptedProvider


def test_an_unreadable_level_is_absent_and_not_stale() -> None:
    registry = Metrics().registry
    levels = Levels(registry)
    levels.budget_used(0.9)
    levels.audit_behind("http", 7, 60.0)
    levels.proposals_stuck({"expired": 60.0})
    levels.database_answered(0.01)
    assert registry.get_sample_value("kortex_audit_behind_rows", {"sink": "http"}) == 7

    levels.database_lost()

    assert registry.get_sample_value("kortex_database_up") == 0
    assert registry.get_sample_value("kortex_audit_behind_rows", {"sink": "http"}) is None
    assert registry.get_sample_value("kortex_audit_behind_seconds", {"sink": "http"}) is None
    assert registry.get_sample_value("kortex_proposal_stuck_seconds", {"state": "expired"}) is None
    assert not (registry.get_sample_value("kortex_budget_used_ratio") or 1) < 1


def test_a_removed_provider_has_no_metric() -> None:
    registry = Metrics().registry
    levels = Levels(registry)
    levels.providers({"openai": True, "ollama": False})
    levels.providers({"openai": False})

    assert registry.get_sample_value("kortex_provider_available", {"provider": "openai"}) == 0
    assert registry.get_sample_value("kortex_provider_available", {"provider": "ollama"}) is None


def test_only_configured_sinks_can_be_behind() -> None:
    assert sinks_of(AuditSettings()) == ["log"]
    assert sinks_of(AuditSettings(events_url="https://collector.example")) == ["log", "http"]


@pytest.mark.parametrize("error", [StorageUnavailable("gone"), TimeoutError()])
async def test_a_database_outage_is_reported_and_the_other_levels_are_set(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def lost(_: StoredLevels) -> None:
        raise error

    monkeypatch.setattr(StoredLevels, "touch", lost)
    provider, metrics = ScriptedProvider([]), Metrics()
    base = SimpleNamespace(
        metrics=metrics,
        stores=SimpleNamespace(database=None),
        settings=Settings(),
        providers={"scripted": provider},
        rounds=Rounds([provider]),
    )

    async def connected() -> bool:
        return False

    access = cast("WatchedCalls", SimpleNamespace(is_open=False))
    look = LevelsLook(cast("Base", base), access, connected)

    await look.run()

    found = metrics.registry.get_sample_value
    assert found("kortex_database_up") == 0
    assert found("kortex_provider_available", {"provider": "scripted"}) == 1
    assert found("kortex_slack_token_refused") == 1
    assert found("kortex_slack_connected", {"mode": "socket"}) == 0


def test_an_unreadable_connection_is_absent() -> None:
    registry = Metrics().registry
    levels = Levels(registry)
    levels.slack_connected(True)
    levels.slack_connection_lost()

    assert registry.get_sample_value("kortex_slack_connected", {"mode": "socket"}) is None


def test_over_http_slack_needs_no_connection() -> None:
    registry = Metrics().registry
    Levels(registry)

    assert registry.get_sample_value("kortex_slack_connected", {"mode": "socket"}) is None
