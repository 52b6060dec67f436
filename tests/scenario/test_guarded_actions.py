"""An action whose target is read first: dry run, count and fingerprint, from kortex.toml to the card.

One bot serves all tests of this module; each has a thread and a proposal of its own.
"""

import json
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from pydantic import JsonValue

from bot.app.worker import Times
from bot.demo.workspace.seeds import RESPONDER
from bot.demo.workspace.timeline import Message
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import PLANE_TOKEN, shared_stage
from tests.stage import CONFIRM, Asked, Stage, question_of, results, shown

__all__ = ["shared_stage"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

READ_TOKEN = "read-token-Uv73Xq"
TIMES = Times(tick_s=0.2)  # what is measured after an action waits for a tick
SETTINGS = {
    "actions": [
        {
            "name": "restart-hosts",
            "description": "Restart hosts",
            "params_schema": {
                "type": "object",
                "properties": {"hosts": {"type": "array", "items": {"type": "string"}}},
                "required": ["hosts"],
            },
            "endpoint": {"url": "PLANE/products/{product}/restart", "token": PLANE_TOKEN},
            "count_url": "PLANE/count",
            "fingerprint_url": "PLANE/products/{product}/info",
            "read_token": READ_TOKEN,
            "max_objects": 2,
            "verify_metric": "http_request_duration_seconds_p99",
            "dry_run": True,
            "products": ["checkout"],
        },
        {
            "name": "rehearse",
            "description": "Only shown",
            "endpoint": {"kind": "rehearsal"},
            "products": ["payments"],
        },
    ]
}


def SCRIPT(request: Recorded) -> Round:  # noqa: N802 - what the shared fixture looks for
    """Propose the hosts named in the question, then repeat what the tool said."""
    question = question_of(request)
    if results(request):
        return Round(text=(f"I have asked: {results(request)[-1]}",))
    if "rehearse" in question:
        wanted = {"action": "rehearse", "product": "payments", "rationale": "to practise"}
        return Round(calls=(Call("core__propose_action", wanted),))
    hosts = question.rsplit("hosts ", 1)[-1].split()
    arguments = {
        "action": "restart-hosts",
        "product": "checkout",
        "params": {"hosts": hosts},
        "rationale": "they are stuck",
    }
    return Round(calls=(Call("core__propose_action", arguments),))


def _two_hosts() -> JsonValue:
    return {"objects": ["web-1", "web-2"]}


@dataclass
class Shop:
    """What the control plane answers, by what it is asked."""

    info: dict[str, JsonValue] = field(default_factory=lambda: {"config_hash": "a1"})
    count: JsonValue = field(default_factory=_two_hosts)

    async def post(self, request: web.Request) -> web.StreamResponse:
        order = json.loads(await request.read())
        if order["dry_run"]:
            return web.json_response({"preview": {"would_restart": order["params"]["hosts"]}})
        return web.json_response({"restarted": order["params"]["hosts"]})

    async def get(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self.count if request.path == "/count" else self.info)


@pytest.fixture
def shop(shared_stage: Stage) -> Shop:
    """A shop of this test behind the shared bot's control plane."""
    shared_stage.plane.received.clear()
    made = Shop()
    shared_stage.plane.post, shared_stage.plane.get = made.post, made.get
    return made


async def proposed(stage: Stage) -> tuple[Asked, Message]:
    asked = await stage.ask("@kortex propose hosts web-1 web-2", stage.newcomer())
    await stage.answer(asked)
    return asked, await stage.card(asked)


def orders(stage: Stage) -> list[bool]:
    """`dry_run` of each order in turn."""
    return [json.loads(post.body)["dry_run"] for post in stage.plane.of("POST")]


async def test_the_card_shows_the_preview_and_only_a_confirmation_uses_the_acting_token(
    shared_stage: Stage, shop: Shop
) -> None:
    stage = shared_stage
    asked, card = await proposed(stage)

    assert "would_restart: `web-1, web-2`" in shown(card)
    assert "`web-1`, `web-2`" in shown(card)
    tokens = {r.headers["Authorization"] for r in stage.plane.received}
    assert tokens == {f"Bearer {READ_TOKEN}"}
    assert orders(stage) == [True]

    await stage.press(RESPONDER, card, CONFIRM)

    await stage.card(asked, "succeeded.")
    assert orders(stage) == [True, True, False]
    assert stage.plane.of("POST")[-1].headers["Authorization"] == f"Bearer {PLANE_TOKEN}"
    verdicts = stage.query("SELECT body FROM audit WHERE kind = 'guard.verdict' ORDER BY seq")
    assert [json.loads(body)["guard"] for (body,) in verdicts][-3:] == [
        "blast_radius",
        "dry_run",
        "drift",
    ]

    # Ten minutes later.
    await stage.change(
        "UPDATE proposals SET decided_at = decided_at - 600000000 WHERE action='restart-hosts'"
    )
    await stage.change("UPDATE watches SET due_at = 1")
    await stage.note(asked, "after restart-hosts. Before: ")


async def test_a_target_that_drifts_is_not_touched_and_both_states_are_shown(
    shared_stage: Stage, shop: Shop
) -> None:
    stage = shared_stage
    asked, card = await proposed(stage)
    shop.info = {"config_hash": "b2"}

    await stage.press(RESPONDER, card, CONFIRM)

    after = await stage.card(asked, "differs from the card")
    assert "config_hash was a1, is b2" in shown(after)
    await stage.note(asked, "not run: its target differs from the card")
    assert orders(stage) == [True, True]
    assert stage.query("SELECT state FROM proposals WHERE card_ts = ?", card.ts) == [
        ("superseded",)
    ]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("propose hosts web-*", "holds a wildcard"),
        ("propose hosts web-1 web-2 web-3", "would touch 3 objects; the limit is 2"),
    ],
)
async def test_an_action_on_too_many_targets_is_refused_to_the_model_without_a_card(
    shared_stage: Stage, shop: Shop, question: str, said: str
) -> None:
    stage = shared_stage
    shop.count = {"count": question.count("web-")}
    asked = await stage.ask(f"@kortex {question}", stage.newcomer())

    assert said in await stage.answer(asked)
    assert stage.cards(asked) == []
    assert False not in orders(stage)


async def test_a_dry_run_passes_every_guard_and_sends_nothing(
    shared_stage: Stage, shop: Shop
) -> None:
    stage = shared_stage
    asked = await stage.ask("@kortex rehearse it", stage.newcomer())
    await stage.answer(asked)
    card = await stage.card(asked)
    assert "rehearsal: `nothing is sent`" in shown(card)

    await stage.press(RESPONDER, card, CONFIRM)

    await stage.note(asked, "Rehearse payments: rehearsed, nothing sent.")
    assert stage.plane.received == []
    watched = stage.query(
        "SELECT kind FROM watches JOIN proposals ON proposals.id = watches.proposal_id"
        " WHERE action = 'rehearse' AND kind = 'effect'"
    )
    assert watched == []
