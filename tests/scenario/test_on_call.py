"""Who may decide at the moment of the press, on a running bot: rotas, groups, lists, and their loss.

One bot serves all tests of this module; each has an action and a role of its own, so that nothing
is known of it yet.
"""

import asyncio
import re
from dataclasses import dataclass, field, replace

import pytest
import pytest_asyncio
from aiohttp import web

from bot.demo.workspace.people import UserGroup
from bot.demo.workspace.seeds import (
    GUEST,
    MEMBER,
    OTHER_BOT,
    RESPONDER,
    RESPONDERS,
    SECOND_RESPONDER,
    STRANGER,
)
from bot.demo.workspace.timeline import Message
from bot.slack.roles.directory import NO_ROTA, UNREAD
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import shared_stage
from tests.stage import CONFIRM, Asked, Stage, question_of, results, shown

__all__ = ["shared_stage"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

NAMES = ("on-call", "lost", "away", "back", "outside", "unread", "mine")


def rota(name: str) -> dict[str, object]:
    oncall = {"kind": "json", "url": f"PLANE/rota/{name}", "path": "people[].email"}
    return {"oncall": {**oncall, "timeout": "2s"}}


def action(name: str) -> dict[str, object]:
    return {
        "name": name,
        "description": name,
        "endpoint": {"kind": "rehearsal"},
        "confirm": [name],
    }


LISTED = ("named", "dissolved")
LISTED_PEOPLE = (GUEST, STRANGER, OTHER_BOT)
SETTINGS = {
    "roles": {
        "responder": {"usergroups": [RESPONDERS]},
        **{name: rota(name) for name in NAMES},
        "named": {"users": [*LISTED_PEOPLE]},
        "dissolved": {"usergroups": ["S0DISSOLV1"]},
    },
    "channels": [
        {"match": "incident-*", "products": ["checkout"], "confirm": ["responder", "named"]}
    ],
    "actions": [action(name) for name in (*NAMES, *LISTED)],
}


def SCRIPT(request: Recorded) -> Round:  # noqa: N802 - what the shared fixture looks for
    """Propose the action that is named after "propose", once."""
    question = question_of(request)
    if results(request) or "propose" not in question:
        return Round(text=("I have looked.",))
    name = question.split("propose ", 1)[1].split(maxsplit=1)[0]
    wanted = {"action": name, "product": "checkout", "params": {}, "rationale": "r"}
    return Round(calls=(Call("core__propose_action", wanted),))


@dataclass
class Rotas:
    """Who is on call, by the rota's name; `broken` ones answer 500."""

    people: dict[str, list[str]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)

    async def get(self, request: web.Request) -> web.StreamResponse:
        name = request.path.rsplit("/", 1)[-1]
        if name in self.broken:
            raise web.HTTPInternalServerError
        named = [{"email": f"{who}@example.com"} for who in self.people.get(name, [])]
        return web.json_response({"people": named})


@pytest_asyncio.fixture(loop_scope="module")
async def rotas(shared_stage: Stage) -> Rotas:
    """Mira is on call everywhere until a test says otherwise."""
    await shared_stage.close_open()
    made = Rotas({name: ["mira"] for name in NAMES})
    shared_stage.plane.get = made.get
    return made


async def proposed(stage: Stage, name: str) -> tuple[Asked, Message]:
    """A thread with an open proposal of that action."""
    asked = await stage.ask(f"@kortex propose {name}", stage.newcomer())
    await stage.answer(asked)
    return asked, await stage.card(asked)


def state_of(stage: Stage, card: Message) -> str:
    """As stored."""
    return str(stage.query("SELECT state FROM proposals WHERE card_ts = ?", card.ts)[0][0])


async def refused(stage: Stage, user: str, card: Message) -> str:
    told = await stage.private_reply(user, stage.press(user, card, CONFIRM))
    assert state_of(stage, card) == "pending"
    return told


def mentions_of(card: Message) -> list[str]:
    (line,) = [line for line in shown(card).splitlines() if "Can decide" in line]
    return re.findall(r"<[@!]([^>|]*)", line)


async def test_a_card_mentions_only_the_rotas_on_call_person(
    shared_stage: Stage, rotas: Rotas
) -> None:
    _, card = await proposed(shared_stage, "on-call")
    assert mentions_of(card) == [RESPONDER, f"subteam^{RESPONDERS}", *LISTED_PEOPLE]


async def test_a_card_with_an_unreadable_rota_mentions_the_groups_and_says_so(
    shared_stage: Stage, rotas: Rotas
) -> None:
    rotas.broken.add("unread")
    _, card = await proposed(shared_stage, "unread")
    assert mentions_of(card) == [f"subteam^{RESPONDERS}", *LISTED_PEOPLE]
    assert UNREAD in shown(card)


async def test_an_on_call_person_without_the_role_is_not_mentioned(
    shared_stage: Stage, rotas: Rotas
) -> None:
    rotas.people["mine"] = ["priya"]
    _, card = await proposed(shared_stage, "mine")
    assert mentions_of(card) == [f"subteam^{RESPONDERS}", *LISTED_PEOPLE]
    assert UNREAD not in shown(card)


async def test_a_responder_on_call_confirms_and_one_of_the_two_is_not_enough(
    shared_stage: Stage, rotas: Rotas
) -> None:
    stage = shared_stage
    rotas.people["on-call"] = ["mira", "priya"]
    asked, card = await proposed(stage, "on-call")
    assert "*Can decide*  responder, named (only if also on call)" in shown(card)

    not_on_call = await refused(stage, SECOND_RESPONDER, card)
    assert "a responder or named who is on call" in not_on_call
    assert "You don't have the role for this." in await refused(stage, MEMBER, card)

    await stage.press(RESPONDER, card, CONFIRM)
    await stage.card(asked, "rehearsed, nothing sent.")


async def test_a_person_who_left_on_call_after_the_card_is_refused(
    shared_stage: Stage, rotas: Rotas
) -> None:
    _, card = await proposed(shared_stage, "lost")
    rotas.people["lost"] = ["jonas"]
    assert "who is also a lost" in await refused(shared_stage, RESPONDER, card)


async def test_an_unreadable_rota_refuses_until_it_is_readable(
    shared_stage: Stage, rotas: Rotas
) -> None:
    asked, card = await proposed(shared_stage, "away")
    rotas.broken.add("away")
    assert NO_ROTA in await refused(shared_stage, RESPONDER, card)
    assert await shared_stage.card(asked) == card

    rotas.broken.clear()
    await shared_stage.press(RESPONDER, card, CONFIRM)
    await shared_stage.card(asked, "rehearsed, nothing sent.")


async def test_an_unknown_email_address_admits_no_one(shared_stage: Stage, rotas: Rotas) -> None:
    rotas.people["outside"] = ["nobody", "lee", "alex.partner"]  # deactivated; another workspace
    _, card = await proposed(shared_stage, "outside")
    assert "You don't have the role for this." in await refused(shared_stage, RESPONDER, card)


async def test_a_group_emptied_after_the_card_admits_no_one(
    shared_stage: Stage, rotas: Rotas
) -> None:
    groups = shared_stage.workspace.roster.groups
    groups["S0DISSOLV1"] = UserGroup("S0DISSOLV1", "gone", "Gone", (RESPONDER,))
    _, card = await proposed(shared_stage, "dissolved")
    groups["S0DISSOLV1"] = replace(groups["S0DISSOLV1"], users=())
    assert "who is also a dissolved" in await refused(shared_stage, RESPONDER, card)


async def test_external_people_that_only_one_side_names_cannot_decide(
    shared_stage: Stage, rotas: Rotas
) -> None:
    stage = shared_stage
    _, card = await proposed(stage, "back")
    async with asyncio.TaskGroup() as presses:
        told = [
            presses.create_task(stage.private_reply(user, stage.forge(user, card, CONFIRM)))
            for user in (GUEST, STRANGER, OTHER_BOT)
        ]
    guest, stranger, bot = (each.result() for each in told)
    assert "Guests can't confirm. Ask a " in guest
    assert "You are in another workspace" in stranger
    assert "Bots can't decide." in bot
    assert state_of(stage, card) == "pending"


async def test_a_guest_that_a_role_lists_by_id_can_decide(
    shared_stage: Stage, rotas: Rotas
) -> None:
    asked, card = await proposed(shared_stage, "named")
    await shared_stage.press(GUEST, card, CONFIRM)
    assert f"<@{GUEST}>" in shown(await shared_stage.card(asked, "rehearsed, nothing sent."))
