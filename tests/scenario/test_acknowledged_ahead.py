"""Slack is answered, durably, while everything else waits for the database.

Nothing here is timed: what an acknowledgement must not wait for is held until it was given.
"""

import asyncio
import http.client
import sqlite3
import threading
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Any

import orjson

from bot.demo.workspace.seeds import CHECKOUT, MEMBER
from bot.demo.workspace.signed_http import sign
from bot.slack.connection.http_ingress import PATH
from bot.store.dialect import Connection
from bot.store.sqlite_threads import SqliteThreads
from tests.fakes.model_server import Recorded, Round
from tests.fixtures_service import Start, stage
from tests.stage import Asked, Stage

__all__ = ["stage"]

HTTP = {"slack": {"mode": "http", "app_token": ""}}
PATIENCE_S = 10.0
QUEUED = 50


def script(_request: Recorded) -> Round:
    return Round(text=("It is the deploy.",))


@asynccontextmanager
async def holding(start: Start) -> AsyncIterator[tuple[Stage, Asked]]:
    """A bot, and a message that it has not heard of."""
    async with start(script, HTTP) as running:
        ts = await running.workspace.say(MEMBER, CHECKOUT, "checkout is slow")
        yield running, Asked(CHECKOUT, ts, ts)


def delivered(stage: Stage, asked: Asked) -> tuple[int, list[Any]]:
    """From another thread: Slack's request, and what is in the database once it is answered."""
    app = stage.workspace.app
    mention = {
        "type": "app_mention",
        "channel": asked.channel,
        "user": MEMBER,
        "team": app.team_id,
        "text": f"<@{app.bot_user_id}> why?",
        "ts": asked.ts,
    }
    body = orjson.dumps(
        {
            "type": "event_callback",
            "team_id": app.team_id,
            "api_app_id": app.app_id,
            "event_id": "Ev1",
            "event": mention,
        }
    )
    at = str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "X-Slack-Request-Timestamp": at,
        "X-Slack-Signature": sign(stage.workspace.signing_secret, at, body),
    }
    port = stage.service.http_port
    slack = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    with closing(slack) as connection:
        connection.request("POST", PATH, body, headers)
        status = connection.getresponse().status
    with closing(sqlite3.connect(stage.folder / "kortex.db")) as database:
        return status, database.execute("SELECT ts FROM tickets").fetchall()


class Arrivals(deque[Any]):
    """The line of the urgent, which tells that somebody joined it."""

    def __init__(self) -> None:
        super().__init__()
        self.any = threading.Event()

    def append(self, job: Any) -> None:
        super().append(job)
        self.any.set()


async def test_the_queue_of_the_databases_writer_is_full(stage: Start) -> None:
    async with holding(stage) as (running, asked):
        database = running.service.base.stores.database
        assert isinstance(database._threads, SqliteThreads)
        arrivals = database._threads._urgent = Arrivals()
        answered = threading.Event()

        async def first(_connection: Connection) -> bool:
            return arrivals.any.wait(PATIENCE_S)

        async def behind(_connection: Connection) -> bool:
            return answered.wait(PATIENCE_S)

        def deliver() -> int:
            status, _ = delivered(running, asked)
            answered.set()
            return status

        async with asyncio.TaskGroup() as group:
            before = group.create_task(database.transact(first))
            queued = [group.create_task(database.transact(behind)) for _ in range(QUEUED)]
            await asyncio.sleep(0)
            status = await asyncio.to_thread(deliver)
        assert (status, before.result()) == (200, True)
        assert all(each.result() for each in queued)
