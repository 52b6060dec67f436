"""A backend's kind decides what reads it, and which keys its table may have."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from bot.app.backend_kinds import open_logs, open_metrics
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError, parse
from tests.fakes.capabilities import FakeClock

AWS = 'region = "eu-central-1"\naccess_key_id = "AKIDEXAMPLE"\nsecret_access_key = "hidden-key"\n'


def configured(table: str, text: str) -> Settings:
    return parse(f"[observe.{table}]\n{text}", "kortex.toml", {})


async def opened_logs(text: str) -> object:
    settings = configured("logs", text)
    async with AsyncExitStack() as stack:
        # In a thread, as at a start: an adapter's first import and certificates are read from files.
        return await asyncio.to_thread(open_logs, settings.observe.logs, (), "observe.logs", stack)


@pytest.mark.parametrize(
    "text",
    [
        'kind = "loki"\nurl = "http://loki:3100"',
        'kind = "victorialogs"\nurl = "http://vl:9428"\nproduct_field = "app"',
        'kind = "elasticsearch"\nurl = "https://es:9200"\nindex = "logs-*"\nlevel_field = "lvl"',
        'kind = "opensearch"\nurl = "https://os:9200"\nuser = "kortex"\npassword = "p"',
        f'kind = "cloudwatch"\nlog_groups = ["/ecs/prod-"]\n{AWS}',
    ],
)
async def test_every_kind_of_logs_is_opened(text: str) -> None:
    assert await opened_logs(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        'kind = "prometheus"\nurl = "http://prometheus:9090"',
        'kind = "datadog"\nheaders = { DD-API-KEY = "a", DD-APPLICATION-KEY = "b" }',
        f'kind = "cloudwatch"\nnamespaces = ["AWS/RDS"]\n{AWS}',
    ],
)
async def test_every_kind_of_metrics_is_opened(text: str) -> None:
    settings = configured("metrics", text)
    async with AsyncExitStack() as stack:
        asked = (settings.observe.metrics, (), FakeClock(), "observe.metrics", stack)
        assert await asyncio.to_thread(open_metrics, *asked)


@pytest.mark.parametrize(
    "text", ['kind = "datadog"\nregion = "eu"', 'kind = "datadog"\ntenant = "a"']
)
def test_key_of_another_kind_of_metrics_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a key of kind 'datadog'"):
        configured("metrics", text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('kind = "loki"\nindex = "logs-*"', "index is not a key of kind 'loki'"),
        ('kind = "victorialogs"\nselector = "{}"', "selector is not a key of kind 'victorialogs'"),
        ('kind = "opensearch"\nlog_groups = ["/ecs/"]', "log_groups is not a key"),
        ('kind = "elasticsearch"\nindex = ""', "index"),
    ],
)
def test_key_of_another_kind_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        configured("logs", text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('kind = "cloudwatch"', r"observe\.logs\.region"),
        (
            'kind = "cloudwatch"\nregion = "eu-central-1"\naccess_key_id = "A"',
            r"observe\.logs\.secret_access_key",
        ),
        (f'kind = "cloudwatch"\ntoken = "t"\n{AWS}', "access keys"),
        ('kind = "elasticsearch"', r"observe\.logs\.url"),
    ],
)
async def test_a_missing_setting_of_a_kind_is_named(text: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as refused:
        await opened_logs(text)
    assert "hidden-key" not in str(refused.value)


def test_keys_of_aws_are_masked_in_every_text() -> None:
    assert "hidden-key" in configured("logs", f'kind = "cloudwatch"\n{AWS}').secrets()


def test_dumped_settings_can_be_read_again() -> None:
    settings = configured("logs", 'kind = "victorialogs"\nurl = "http://vl:9428"')
    dumped = settings.observe.logs.model_dump()
    assert type(settings.observe.logs).model_validate(dumped) == settings.observe.logs
