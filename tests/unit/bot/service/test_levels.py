"""Levels tell how things stand, and nothing about what could not be read."""

from bot.service.levels import sinks_of
from bot.settings.model import AuditSettings
from bot.telemetry.levels import Levels
from bot.telemetry.metrics import Metrics


def test_what_could_not_be_read_is_absent_and_not_what_it_was() -> None:
    registry = Metrics().registry
    levels = Levels(registry)
    levels.budget_used(0.9)
    levels.audit_behind({"http": 7})
    levels.proposals_stuck({"expired": 60.0})
    levels.database_answered(0.01)
    assert registry.get_sample_value("kortex_audit_behind_rows", {"sink": "http"}) == 7

    levels.database_lost()

    assert registry.get_sample_value("kortex_database_up") == 0
    assert registry.get_sample_value("kortex_audit_behind_rows", {"sink": "http"}) is None
    assert registry.get_sample_value("kortex_proposal_stuck_seconds", {"state": "expired"}) is None
    assert not (registry.get_sample_value("kortex_budget_used_ratio") or 1) < 1


def test_a_provider_that_is_no_longer_configured_is_told_no_more() -> None:
    registry = Metrics().registry
    levels = Levels(registry)
    levels.providers({"openai": True, "ollama": False})
    levels.providers({"openai": False})

    assert registry.get_sample_value("kortex_provider_available", {"provider": "openai"}) == 0
    assert registry.get_sample_value("kortex_provider_available", {"provider": "ollama"}) is None


def test_only_sinks_that_are_configured_can_be_behind() -> None:
    assert sinks_of(AuditSettings()) == ["log"]
    assert sinks_of(AuditSettings(events_url="https://collector.example")) == ["log", "http"]
