"""What the fork server holds before it forks: every import, and what a process builds once."""

import gc

import dbos._sys_db_postgres
import dbos._sys_db_sqlite  # noqa: F401
import psycopg  # noqa: F401
import slack_bolt.listener_matcher.async_builtins  # noqa: F401
import sqlalchemy.dialects.postgresql.psycopg
import sqlalchemy.dialects.sqlite.pysqlite  # noqa: F401

from adapters.http.tls import ssl_context
from bot.privacy.detector import detector
from tests.scenario.durability import replica  # noqa: F401

detector(pii=True)
ssl_context()
# No replica's full collection looks at what is here.
gc.collect()
gc.freeze()
