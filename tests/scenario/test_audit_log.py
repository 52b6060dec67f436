"""A running bot's audit log: complete, sent as events, witnessed in a channel, shown to admins."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
from aiohttp import web
from aiohttp.test_utils import TestServer

from bot.audit.chain import AuditKeys
from bot.audit.checkpoint import Checkpoint, checkpoints_in
from bot.audit.verify import Summary
from bot.demo.workspace.seeds import CHECKOUT, RESPONDER
from bot.store.audit_reading import StoredAuditReader, verify
from bot.store.database import Database
from tests.fakes.control_plane_server import says
from tests.fakes.model_server import Call, Recorded, Round
from tests.fakes.nats_server import nats_server
from tests.fixtures_service import Start, stage
from tests.stage import CONFIRM, WAIT_S, results

__all__ = ["stage"]

KEY = hashlib.sha256(b"the audit log of the tests").hexdigest()
KEYS = AuditKeys("1", {"1": KEY.encode()})
TOKEN = "collector-token-Hn52Kd81"
PROPOSAL = {
    "action": "rollback-deploy",
    "product": "checkout",
    "params": {"version": "v2.3.7"},
    "rationale": "p99 rose with the deploy",
}
TOLD = ("turn.started", "model.call", "tool.call", "proposal.created", "proposal.confirmed",
        "guard.verdict", "dispatch.intent", "dispatch.outcome")  # fmt: skip


class Collector:
    """An event collector and an object store on loopback."""

    def __init__(self) -> None:
        self.url = ""
        self.events: list[dict[str, object]] = []
        self.objects: dict[str, str] = {}
        self.outcome = asyncio.Event()

    async def take(self, request: web.Request) -> web.Response:
        assert request.headers["authorization"] == f"Bearer {TOKEN}"
        body = await request.read()
        if request.method == "PUT":
            self.objects[request.path] = body.decode()
            return web.Response()
        self.events += orjson.loads(body)
        if any(each["subject"] == "dispatch.outcome" for each in self.events):
            self.outcome.set()
        return web.Response()

    @property
    def kinds(self) -> list[object]:
        return [each["subject"] for each in self.events]


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    collector = Collector()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", collector.take)
    async with TestServer(app) as server:
        collector.url = str(server.make_url("")).rstrip("/")
        yield collector


def read_back(url: str, witnesses: list[Checkpoint]) -> tuple[Summary, list[str]]:
    """The verdict on the audit log and its kinds; on a loop of its own, for that of the bot is done."""

    async def read() -> tuple[Summary, list[str]]:
        database = await Database.open(url)
        audit_log = StoredAuditReader(database)
        found = await verify(audit_log, KEYS, witnesses)
        kinds = [each.kind for each in await audit_log.entries()]
        await database.close()
        return found, kinds

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(read())).result()


def propose(request: Recorded) -> Round:
    if results(request):
        return Round(text=("I have looked.",))
    return Round(calls=(Call("core__propose_action", PROPOSAL),))


async def test_every_decision_is_a_row_an_event_and_witnessed(stage: Start, tmp_path: Path) -> None:
    async with collecting() as collector, nats_server() as nats:
        audit = {
            "key": KEY,
            "checkpoint_stdout": False,
            "checkpoint_file": str(tmp_path / "checkpoints.txt"),
            "checkpoint_url": f"{collector.url}/checkpoints/{{size}}.txt",
            "checkpoint_token": TOKEN,
            "checkpoint_channel": CHECKOUT,
            "events_url": f"{collector.url}/events",
            "events_token": TOKEN,
            "events_nats": nats.url,
        }
        async with stage(propose, {"audit": audit}) as running:
            running.plane.post = says(200, {"rolled_back_to": "v2.3.7"})
            asked = await running.ask("@kortex propose a way out", running.newcomer())
            await running.answer(asked)
            await running.press(RESPONDER, await running.card(asked), CONFIRM)
            await running.card(asked, "v2.3.7")
            async with asyncio.timeout(WAIT_S):
                await collector.outcome.wait()
                await nats.arrived.wait()
            await running.workspace.command(RESPONDER, CHECKOUT, "audit")
            shown = await running.workspace.wait_for(
                lambda: "".join(running.whispers(RESPONDER)), WAIT_S
            )
            await running.stop_service()
            witnesses = checkpoints_in(
                "\n".join(m.text for m in running.workspace.messages(CHECKOUT))
            )
            found, kinds = read_back(f"sqlite+aiosqlite:///{running.folder}/kortex.db", witnesses)
    assert (found.bad, found.unkeyed) == (None, 0)
    assert [each.size for each in witnesses][-1] == found.rows  # the one at shutdown
    assert checkpoints_in((tmp_path / "checkpoints.txt").read_text(encoding="utf-8")) == witnesses
    assert f"{witnesses[-1].line}\n" in collector.objects.values()
    assert [kind for kind in TOLD if kind not in collector.kinds] == []
    order = [kinds.index(kind) for kind in TOLD if kind not in ("model.call", "tool.call")]
    assert order == sorted(order)
    assert collector.kinds == kinds[: len(collector.kinds)]
    published = [message.body["subject"] for message in nats.received]
    assert published == kinds[: len(published)]
    assert "koder.admin.action" in running.log.getvalue()
    assert "*Audit log*" in shown
