"""A proposal that is open is pointed to with a link to its card, and is not raised again."""

from bot.demo.workspace.seeds import RESPONDER
from bot.slack.showing.cards import CONFIRM_ACTION
from tests.fixtures_service import Start, stage
from tests.stage import says

__all__ = ["stage"]

QUESTION = "@kortex why is checkout slow?"


async def test_asked_again_triage_links_the_card_of_what_is_open(stage: Start) -> None:
    more = {"llm": {"default_provider": "triage"}}
    async with stage(says("never asked"), more) as running:
        asked = await running.ask(QUESTION, RESPONDER)
        first = await running.answer(asked)
        card = await running.card(asked)
        again = await running.answered("why is checkout slow?", RESPONDER, thread=asked.thread)
        ((proposal,),) = running.query("SELECT id FROM proposals")

    link = f"/archives/{card.channel}/p{card.ts.replace('.', '')}?"
    assert "Open proposal" not in first
    assert "proposed already" in again
    assert proposal in again
    assert (
        f"Open proposal: rollback-deploy of checkout, <https://kortex-local.slack.com{link}"
        in again
    )
    assert len(running.cards(asked)) == 1


async def test_asked_again_after_it_was_done_triage_tells_who_confirmed_it(stage: Start) -> None:
    more = {"llm": {"default_provider": "triage"}}
    async with stage(says("never asked"), more) as running:
        asked = await running.ask(QUESTION, RESPONDER)
        await running.answer(asked)
        await running.press(RESPONDER, await running.card(asked), CONFIRM_ACTION)
        await running.card(asked, "succeeded")
        again = await running.answered("why is checkout slow?", RESPONDER, thread=asked.thread)

    assert f"A rollback of checkout was confirmed by {RESPONDER} at " in again
    assert "and is done; no deploy came since, so it is not proposed again" in again
    assert "not in any result" not in again
    assert len(running.cards(asked)) == 1
