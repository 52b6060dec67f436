"""What the fork server holds before it forks: every import, and what a process builds once."""

import gc
from contextlib import suppress
from importlib import import_module

from pydantic import ValidationError

from adapters.http.tls import ssl_context
from bot.privacy.detector import detector
from bot.settings.model import Settings
from tests.scenario.durability import replica  # noqa: F401
from tools.catalog import ToolCatalog
from tools.core.all import core_tools
from tools.cursor import CursorSigner
from tools.policy import ToolPolicy

LATE = (
    "adapters.observe.loki",
    "adapters.observe.signal_promql",
    "anyio._backends._asyncio",
    "apscheduler.executors.asyncio",
    "bot.chat.claims.answer",
    "bot.slack.ingress.socket_mode",
    "dbos._sys_db_postgres",
    "dbos._sys_db_sqlite",
    "psycopg",
    "slack_bolt.listener_matcher.async_builtins",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite.pysqlite",
)

for name in LATE:
    import_module(name)
with suppress(ValidationError):
    Settings.model_validate({})
ToolCatalog(core_tools(CursorSigner(bytes(32))), ToolPolicy())
detector(pii=True)
ssl_context()
# No replica's full collection looks at what is here.
gc.collect()
gc.freeze()
