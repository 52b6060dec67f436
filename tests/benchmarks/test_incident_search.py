"""Search among a million incidents, on both databases: any query, in milliseconds.

`KORTEX_BENCH_INCIDENTS` sets another number. Filling takes a few minutes.
"""

import os
import random
import sqlite3
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import accumulate
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from bot.store.columns import to_micros
from bot.store.database import Database
from bot.store.incidents import StoredIncidents
from tests.benchmarks.figures import show
from tests.fixtures_database import new_database, plain_address
from tools.capabilities import IncidentQuery, Interval
from tools.search_words import month_label, product_label, words_of

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1800)]

COUNT = int(os.environ.get("KORTEX_BENCH_INCIDENTS", "1000000"))
BATCH = 5000
NOW = datetime(2026, 11, 21, tzinfo=UTC)
PRODUCTS = [f"product-{n}" for n in range(50)]
TARGET_MS = {"sqlite": 100.0, "postgresql": 100.0}
# Few words are in half of all incidents, most are rare, as in real text.
COMMON = ["timeout", "error", "latency", "checkout", "pod", "restarted", "database", "deploy"]
RARE = 40_000
WEIGHTS = [1.0 / (rank + 3) for rank in range(len(COMMON) + RARE)]
CUMULATED = list(accumulate(WEIGHTS))


@cache
def vocabulary() -> list[str]:
    """The commonest word first."""
    return [words_of(word)[0] for word in (*COMMON, *(f"word{n}" for n in range(RARE)))]


COLUMNS = (
    "source", "external_id", "product", "title", "opened_at", "closed_at", "resolution", "words",
)  # fmt: skip


def rows(first: int, chance: random.Random) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for number in range(first, min(first + BATCH, COUNT)):
        words = chance.choices(vocabulary(), cum_weights=CUMULATED, k=40)
        opened = NOW - timedelta(minutes=(COUNT - number) * 1.2)
        product = chance.choice(PRODUCTS)
        labels = [product_label(product), month_label(opened)]
        title, resolution = " ".join(words[:6]), " ".join(words[6:20])
        opened_us = to_micros(opened)
        text = " ".join([*labels, *dict.fromkeys(words)])
        found.append(
            ("bench", str(number), product, title, opened_us, opened_us + 1, resolution, text)
        )
    return found


def queries(chance: random.Random) -> dict[str, list[IncidentQuery]]:
    def asked(text: str, **more: object) -> IncidentQuery:
        return IncidentQuery(text, "C1", **more)  # type: ignore[arg-type]

    rare = [f"word{chance.randrange(2000, 40_000)}" for _ in range(20)]
    month = Interval(NOW - timedelta(days=400), NOW - timedelta(days=370))
    return {
        "two common words": [asked(" ".join(chance.sample(COMMON, 2))) for _ in range(20)],
        "eight common words": [asked(" ".join(COMMON))] * 5,
        "common and rare": [asked(f"checkout timeout {word}") for word in rare],
        "rare": [asked(word) for word in rare],
        "a sentence": [
            asked(" ".join(["why is the", *chance.choices(vocabulary(), WEIGHTS, k=9)]))
            for _ in range(20)
        ],
        "of a product": [asked("timeout error", product=p) for p in chance.sample(PRODUCTS, 20)],
        "of a month": [asked("timeout latency", interval=month)] * 10,
        "nothing there": [asked("zzyzx qqqq")] * 5,
        "syntax": [asked("a\" OR NEAR( -x * :y ^ ' ; DROP timeout")] * 5,
    }


def fill_sqlite(url: str) -> None:
    path = sa.make_url(url).database or ""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        chance = random.Random(7)
        for first in range(0, COUNT, BATCH):
            connection.execute("BEGIN")
            connection.executemany(
                f"INSERT INTO incidents ({', '.join(COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - our own names
                rows(first, chance),
            )
            connection.execute("COMMIT")


async def fill_postgresql(url: str) -> None:
    async with await psycopg.AsyncConnection.connect(plain_address(url)) as connection:
        index = await connection.execute(
            "SELECT indexdef FROM pg_indexes WHERE indexname = 'ix_incidents_words'"
        )
        ((made_by,),) = await index.fetchall()
        await connection.execute("DROP INDEX ix_incidents_words")
        chance = random.Random(7)
        into = f"COPY incidents ({', '.join(COLUMNS)}) FROM STDIN"
        async with connection.cursor() as cursor, cursor.copy(into) as copy:
            for first in range(0, COUNT, BATCH):
                for row in rows(first, chance):
                    await copy.write_row(row)
        await connection.execute(made_by)
        await connection.execute("ANALYZE incidents")


@pytest.fixture(params=["sqlite", "postgresql"])
async def filled(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    async with new_database(request.param, tmp_path) as url:
        if request.param == "sqlite":
            fill_sqlite(url)
        else:
            await fill_postgresql(url)
        yield url


async def test_any_query_is_answered_in_time(filled: str) -> None:
    database = await Database.open(filled)
    history = StoredIncidents(database)
    every: list[float] = []
    for kind, asked in queries(random.Random(3)).items():
        took: list[float] = []
        for query in asked:
            began = time.perf_counter()
            await history.search(query)
            took.append((time.perf_counter() - began) * 1000)
        every += took
        show(
            f"{COUNT} incidents, {database.dialect}, {kind}",
            median_ms=f"{statistics.median(took):.1f}",
            worst_ms=f"{max(took):.1f}",
        )
    p95 = statistics.quantiles(every, n=20)[-1]
    target = TARGET_MS[database.dialect]
    show(f"{COUNT} incidents, {database.dialect} (target {target:.0f})", p95_ms=f"{p95:.1f}")
    await database.close()

    assert len(every) > 100
