"""What a start loads: each library of it is on a list, and what few need is not loaded for all."""

import subprocess
import sys

from tests.sources import ROOT

# Libraries that a bot on SQLite may load until it serves; the next one needs a reason.
MAY_LOAD = frozenset(
    {
        "aiohappyeyeballs", "aiohttp", "aiosignal", "annotated_types",
        "attr", "cython_runtime", "dbos", "frozenlist",
        "idna", "multidict", "orjson",
        "prometheus_client", "propcache", "pydantic", "pydantic_core", "re2", "slack_bolt",
        "slack_sdk", "sqlalchemy", "structlog", "typing_extensions", "typing_inspection",
        "yarl",
    }
)  # fmt: skip
# Loaded at a start by mistake before, with what each costs: tens of modules, megabytes.
NOT_LOADED = (
    "adapters.audit_nats", "adapters.mcp", "adapters.on_call.json_endpoint", "adapters.on_call.pagerduty",
    "adapters.platform.http_platform", "adapters.plugins.manifest", "adapters.plugins.tool",
    "adapters.written_pages", "bot.web.api.nirmata",
    "adapters.deploys.argocd", "adapters.deploys.flux", "adapters.deploys.github", "adapters.deploys.gitlab",
    "adapters.kubernetes", "adapters.observe.conventions", "adapters.observe.jaeger", "adapters.observe.loki",
    "adapters.observe.prometheus", "adapters.observe.sentry", "adapters.observe.tempo", "adapters.oidc",
    "adapters.recorded", "aiohttp.client_ws", "aiohttp.tracing", "aiohttp.web_fileresponse", "aiohttp.web_ws", "alembic", "attr.validators", "bot.chat.claims", "click", "concurrent.futures.process", "croniter", "csv", "dateutil.parser", "dbos._client", "dbos._datasource", "dbos._debouncer", "difflib", "html", "http.server", "jsonschema_rs", "multiprocessing", "prometheus_client.exposition", "rich", "slack_bolt.app.app", "slack_bolt.context.ack.ack", "slack_bolt.context.context", "slack_bolt.context.say.say", "slack_bolt.oauth.async_oauth_flow", "slack_bolt.workflows.step.async_step", "slack_sdk.models.blocks", "slack_sdk.oauth", "slack_sdk.socket_mode", "slack_sdk.web.async_client", "slack_sdk.web.client", "sqlalchemy.connectors.asyncio", "sqlalchemy.dialects.postgresql.asyncpg", "sqlalchemy.dialects.postgresql.pg_catalog", "sqlalchemy.dialects.postgresql.psycopg", "sqlalchemy.dialects.sqlite.aiosqlite", "sqlalchemy.orm", "sqlalchemy.ext.asyncio", "statistics", "greenlet", "aiosqlite", "asyncpg", "bot.demo", "mako", "psycopg.connection", "psycopg_binary", "wsgiref", "xml", "zipfile",
)  # fmt: skip
# aiohttp takes these in where they are installed, which an installation has not.
BESIDE = frozenset({"brotli"})

LOADED = """
import sys
from bot.upkeep.late import spare_libraries
spare_libraries()
import {}
print(*(name for name, each in sys.modules.items() if each and 'Late' not in type(each).__name__), sep='\\n')
"""


SERVICE = LOADED.format("bot.service.lifecycle")
QUESTION = LOADED.format("bot.commands.demo, bot.commands.console")


def loaded(program: str) -> list[str]:
    """Every module that what is imported brings with it."""
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return told.stdout.split()


def test_a_start_loads_what_is_on_the_list_and_nothing_that_few_need() -> None:
    names = loaded(SERVICE)
    ours = {"adapters", "bot", "migrations", "tools", "psycopg", "__main__"}
    libraries = {name.partition(".")[0] for name in names} - ours - BESIDE - sys.stdlib_module_names
    public = {name for name in libraries if not name.startswith("_")}

    assert public - MAY_LOAD == set()
    assert MAY_LOAD - public == set(), "on the list, and loaded no more"
    assert [name for name in names if name.startswith(NOT_LOADED)] == []


def test_a_question_on_the_command_line_loads_nothing_of_slacks_and_no_engine() -> None:
    unneeded = ("slack_", "bot.slack.api", "bot.slack.received", "bot.engine.engine", "dbos")

    assert [name for name in loaded(QUESTION) if name.startswith(unneeded)] == []


# What few need, asked for after the start by those who do.
USED = """
import sqlalchemy as sa
from sqlalchemy.schema import CreateIndex
from aiohttp import WSMsgType, web
from bot.store.columns import metadata

engine = sa.create_engine("postgresql+psycopg://nobody@nowhere/nothing")
written = [CreateIndex(i).compile(dialect=engine.dialect) for t in metadata.tables.values() for i in t.indexes]
print(any(" WHERE " in str(each) for each in written), engine.dialect.driver)

import difflib, html, statistics
print(difflib.get_close_matches("chekout", ["checkout"]), html.escape("<"), statistics.median([1, 2, 9]))
print(isinstance(web.WebSocketResponse(), web.WebSocketResponse))

import attr, importlib.resources
limited = attr.make_class("Limited", {"most": attr.ib(validator=attr.validators.instance_of(int))})
print(limited(3).most, importlib.resources.files("bot").joinpath("cli.py").is_file())
"""


def test_what_was_not_loaded_is_there_when_it_is_used() -> None:
    told = subprocess.run(
        [sys.executable, "-c", SERVICE + USED], cwd=ROOT, check=True, capture_output=True, text=True
    )

    assert told.stdout.splitlines()[-4:] == [
        "True psycopg",
        "['checkout'] &lt; 2",
        "True",
        "3 True",
    ]


# As an installation is, which has no Pygments: Mako asks for a part of `html` then.
MIGRATES = """
import sys
sys.modules["pygments"] = None
from bot.upkeep.late import spare_libraries
spare_libraries()
import alembic.config, html
print(html.escape("<"), html.entities.name2codepoint["lt"])
"""


def test_a_migration_loads_without_what_only_tests_install() -> None:
    assert loaded(MIGRATES) == ["&lt;", "60"]


# A client that tells what it would send.
CALLED = """
import asyncio
from slack_sdk.web.async_client import AsyncWebClient

class Told(AsyncWebClient):
    async def api_call(self, method, **more):
        return method, more["json"]["channel"]

client = Told(token="xoxb-1")
print(isinstance(client, AsyncWebClient), client.token, hasattr(client, "no_such_method"))
print(asyncio.run(client.chat_postMessage(channel="C1", text="found")))
"""


def test_a_method_of_slacks_client_is_its_own() -> None:
    told = subprocess.run(
        [sys.executable, "-c", SERVICE + CALLED],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )

    assert told.stdout.splitlines()[-2:] == ["True xoxb-1 False", "('chat.postMessage', 'C1')"]
