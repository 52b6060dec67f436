"""`python -m tests.soak [--questions 200] [--seed 1]`: replicas are killed, frozen and cut off; see `judge`.

Three replicas on a real PostgreSQL, the local workspace and a scripted model that counts the rounds it
is asked for. The same seed does the same to them; when it hits them differs. Exit 1 on a finding.
"""

import argparse
import asyncio
import logging
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bot.demo.workspace.delivery import DeliveryPolicy
from bot.demo.workspace.people import User
from bot.demo.workspace.seeds import CHECKOUT, RESPONDER
from tests.fakes.model_server import Call, Round
from tests.scenario.durability.world import RESTART, World, logs_of, world_on
from tests.soak.harm import Harm
from tests.soak.judge import is_answered, judge
from tests.soak.proxy import Proxy
from tests.soak.record import Question, Record

REPLICAS = 3
PEOPLE = 8  # a person may ask twenty times a minute
AT_ONCE = 10
PACE_S = 0.12  # between two pieces of a round
ORDER_EVERY = 10
REPLY_CHANCE = 0.6
# Slack's third is after five minutes; here no one waits for that.
DELIVERY = DeliveryPolicy(retry_delays_s=(0.0, 2.0, 5.0, 10.0, 20.0))
END_S = 150.0


async def soak(questions: int, seed: int) -> int:
    """Run it, print figures and findings; the exit code."""
    began, chance = time.monotonic(), random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="kortex-soak-") as folder:
        async with world_on("postgresql", Path(folder)) as world, _proxies(world) as (cut, slack):
            world.workspace.outbox.policy = DELIVERY
            record = Record.of(world)
            harm = Harm(record, chance, cut, slack, REPLICAS)
            await harm.fill()
            asking = _ask_all(record, chance, questions)
            await _while_harmed(record, harm, chance, questions, asking)
            await _quiet(record)
            for each in harm.replicas:
                await each.kill()
            findings = await judge(record)
            _print(record, findings, time.monotonic() - began, seed)
            if findings:
                log = Path("build") / "soak.log"
                await asyncio.to_thread(_keep, world.config.with_suffix(".log"), log)
                _say(f"the replicas' log: {log}")
            return 1 if findings else 0


@asynccontextmanager
async def _proxies(world: World) -> AsyncIterator[tuple[Proxy, Proxy]]:
    url = sa.make_url(world.database_url)
    socket = f"{url.query['host']}/.s.PGSQL.{url.query.get('port', url.port or 5432)}"
    slack_port = int(world.addresses["slack"].rpartition(":")[2])
    async with (
        Proxy(partial(asyncio.open_unix_connection, socket)).listening() as database,
        Proxy(partial(asyncio.open_connection, "127.0.0.1", slack_port)).listening() as slack,
    ):
        proxied = url.set(host="127.0.0.1", port=database.port, query={})
        text = world.config.read_text(encoding="utf-8")
        text = text.replace(world.database_url, proxied.render_as_string(hide_password=False))
        text = text.replace(world.addresses["slack"], f"http://127.0.0.1:{slack.port}")
        world.config.write_text(text, encoding="utf-8")
        yield database, slack


async def _while_harmed(
    record: Record,
    harm: Harm,
    chance: random.Random,
    questions: int,
    asking: Coroutine[Any, Any, None],
) -> None:
    """Until all is asked, and answered or given up."""
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(asking)
        restarts = [questions // 3, 2 * questions // 3]
        while not asked.done():
            await asyncio.sleep(chance.uniform(0.2, 2.0))
            if restarts and len(record.questions) >= restarts[0]:
                restarts.pop(0)
                await harm.restart_database()
            await harm.do()


async def _ask_all(record: Record, chance: random.Random, count: int) -> None:
    people, slots = _people(record.world), asyncio.Semaphore(AT_ONCE)
    threads: list[str] = []
    async with asyncio.TaskGroup() as group:
        for number in range(count):
            await slots.acquire()
            await asyncio.sleep(chance.uniform(0.1, 0.8))
            question = await _ask(record, chance, number, chance.choice(people), threads)
            ends = group.create_task(_end_of(record, question))
            ends.add_done_callback(lambda _done: slots.release())


async def _ask(
    record: Record, chance: random.Random, number: int, person: str, threads: list[str]
) -> Question:
    name, is_order = f"question {number:04d}", number % ORDER_EVERY == 5
    question_at, final = time.time(), Round(text=(f"Answer of {name}.",), pace_s=PACE_S)
    # Of its own: the same order is proposed once in a channel.
    wanted = {"action": "restart", "product": "checkout", "params": {"version": f"v{number}"}}
    order = Call(RESTART.name, {**wanted, "rationale": "it leaks"})
    calls = (order,) if is_order else (logs_of(chance.choice(("checkout", "web", "cart"))),)
    first = Round(text=(f"Looking at {number}.",), calls=calls, pace_s=PACE_S)
    second = Round(text=(f"And on with {number}.",), calls=(logs_of("web"),), pace_s=PACE_S)
    record.world.scripts[name] = [first, final] if is_order else [first, second, final]
    replies = threads and not is_order and chance.random() < REPLY_CHANCE
    thread = chance.choice(threads[-8:]) if replies else None
    asked = await record.world.ask(f"what of {name}?", thread, person)
    if thread is None and not is_order:
        threads.append(asked.ts)
    question = Question(name, asked, question_at, is_order)
    record.questions.append(question)
    return question


async def _end_of(record: Record, question: Question) -> None:
    """Until it is answered, and its order decided by a person who presses until it is."""
    try:
        await _until(record, lambda: is_answered(record, question))
        if question.is_order:
            await _until(record, lambda: bool(_confirmable(record, question)))
            while card := _confirmable(record, question):
                await record.world.workspace.click(RESPONDER, card[0], "proposal:confirm")
                await asyncio.sleep(1.0)
    except TimeoutError:
        record.findings.append(f"{question.name}: nothing came in {END_S:.0f} s")


def _confirmable(record: Record, question: Question) -> list[str]:
    cards = record.world.from_bot(question.asked, "kortex_card")
    return [card.ts for card in cards if "proposal:confirm" in card.action_ids]


async def _until(record: Record, look: Callable[[], bool]) -> None:
    await record.world.workspace.wait_for(look, END_S)


async def _quiet(record: Record) -> None:
    try:
        await record.world.settled()
    except TimeoutError:
        record.findings.append("work, tickets or cards were left in the end")


def _people(world: World) -> list[str]:
    roster, found = world.workspace.roster, []
    for number in range(PEOPLE):
        user = f"U0SOAK{number:04d}"
        roster.users[user] = User(user, user.lower(), user, world.workspace.app.team_id)
        roster.set_members(CHECKOUT, roster.channel(CHECKOUT).members | {user})
        found.append(user)
    return found


def _print(record: Record, findings: list[str], seconds: float, seed: int) -> None:
    asked = len(record.questions)
    rounds, least = record.rounds.total(), 3 * asked - sum(q.is_order for q in record.questions)
    answered = sum(is_answered(record, each) for each in record.questions)
    _say(f"seed {seed}: {asked} questions, {answered} answered, {seconds:.0f} s")
    _say(f"rounds asked for: {rounds} ({least} without a fault)")
    ends = ", ".join(f"{count} {state}" for state, count in sorted(record.ends.items()))
    _say(f"orders: {len(record.orders)} sent, {_twice(record)} of them twice; {ends}")
    _say(f"events that Slack repeated: {record.heard.repeats}")
    _say(f"longest end after SIGTERM: {record.peak_s:.1f} s")
    _say("deeds: " + ", ".join(f"{n} x {name}" for name, n in sorted(record.deeds.items())))
    for each in findings:
        _say(f"FINDING {each}")
    _say(
        f"{len(findings)} findings"
        if findings
        else "ok: nothing lost, nothing twice, the audit log holds"
    )


def _twice(record: Record) -> int:
    return sum(count > 1 for count in record.orders.values())


def _keep(log: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(log.read_bytes())


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--questions", type=int, default=200, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    chosen = parser.parse_args()
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # it reports cut connections
    sys.exit(asyncio.run(soak(chosen.questions, chosen.seed)))


if __name__ == "__main__":
    main()
