"""A running bot whose kortex.toml is edited while a card is open."""

import json

from bot.workspace.seeds import RESPONDER, RESPONDERS
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import Start, stage
from tests.stage import CONFIRM, Stage, results

__all__ = ["stage"]


def proposes(request: Recorded) -> Round:
    if results(request):
        return Round(text=(f"I have asked: {results(request)[-1]}",))
    wanted = {"action": "rollback-deploy", "product": "checkout", "rationale": "it broke"}
    return Round(calls=(Call("core__propose_action", wanted),))


def verdicts(running: Stage) -> list[tuple[str, str]]:
    rows = running.query("SELECT body FROM audit WHERE kind = 'guard.verdict' ORDER BY seq")
    return [(body["guard"], body["reason"]) for (text,) in rows if (body := json.loads(text))]


async def test_roles_and_actions_are_those_of_the_click_not_of_the_card(stage: Start) -> None:
    async with stage(proposes) as running:
        asked = await running.ask("@kortex what now?")
        await running.answer(asked)
        card = await running.card(asked)

        assert await running.reload(roles={"responder": {"users": ["U0SOMEONE"]}})
        told = await running.told(RESPONDER, running.press(RESPONDER, card, CONFIRM))
        assert "You may not decide this" in told

        assert await running.reload(roles={"responder": {"usergroups": [RESPONDERS]}}, actions=())
        await running.press(RESPONDER, card, CONFIRM)
        await running.card(asked, "no longer declared for checkout")

        assert running.effects == 0
        assert verdicts(running) == [
            ("require_approval", "rollback-deploy is no longer declared for checkout")
        ]
        rows = running.query("SELECT body FROM audit WHERE kind = 'config.reloaded' ORDER BY seq")
        assert [json.loads(body)["changed"] for (body,) in rows] == [
            ["roles"],
            ["actions", "roles"],
        ]
