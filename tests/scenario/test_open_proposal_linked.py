"""A proposal that is open is pointed to with a link to its card, and is not raised again."""

import asyncio

from bot.demo.workspace.seeds import RESPONDER, SECOND_RESPONDER
from bot.slack.views.cards import CONFIRM_ACTION
from tests.fixtures_service import Start, stage
from tests.stage import says

__all__ = ["stage"]

NAME = "mira"
QUESTION = "@kortex why is checkout slow?"


async def test_triage_asked_again_links_the_open_card(stage: Start) -> None:
    more = {"llm": {"default_provider": "triage"}}
    async with stage(says("never asked"), more) as running:
        asked = await running.ask(QUESTION, RESPONDER)
        first = await running.answer(asked)
        card = await running.card(asked)
        again = await running.answered("why is checkout slow?", RESPONDER, thread=asked.thread)
        ((proposal,),) = running.query("SELECT id FROM proposals")

    link = f"/archives/{card.channel}/p{card.ts.replace('.', '')}?"
    assert "Open proposal" not in first
    assert "already proposed" in again
    assert proposal in again
    assert "not in any result" not in again
    assert (
        f"Open proposal: rollback-deploy of checkout, <https://kortex-local.slack.com{link}"
        in again
    )
    assert len(running.cards(asked)) == 1


async def test_triage_asked_again_after_the_action_names_the_approver(stage: Start) -> None:
    more = {"llm": {"default_provider": "triage"}}
    async with stage(says("never asked"), more) as running:
        asked = await running.ask(QUESTION, RESPONDER)
        await running.answer(asked)
        await running.press(RESPONDER, await running.card(asked), CONFIRM_ACTION)
        await running.card(asked, "succeeded")
        again = await running.answered("why is checkout slow?", RESPONDER, thread=asked.thread)

    assert f"A rollback of checkout was confirmed by {NAME} at " in again
    assert "and is done, with no deploy since, so I do not propose it again" in again
    assert "not in any result" not in again
    assert len(running.cards(asked)) == 1


async def test_triage_in_another_thread_links_the_open_card_and_later_names_the_approver(
    stage: Start,
) -> None:
    more = {"llm": {"default_provider": "triage"}}
    async with stage(says("never asked"), more) as running:
        asked = await running.ask(QUESTION, RESPONDER)
        await running.answer(asked)
        card = await running.card(asked)
        meanwhile = await running.answered(QUESTION, SECOND_RESPONDER)
        await running.press(RESPONDER, card, CONFIRM_ACTION)
        await running.card(asked, "succeeded")
        after = await running.answered(QUESTION, SECOND_RESPONDER)
        who = await running.answered("@kortex who confirmed the rollback?", SECOND_RESPONDER)
        rows = running.query("SELECT state FROM proposals")

    link = f"/archives/{card.channel}/p{card.ts.replace('.', '')}?"
    assert "Its card is in another thread of this channel; it is linked below" in meanwhile
    assert link in meanwhile
    assert f"A rollback of checkout was confirmed by {NAME} at " in after
    assert "too early to say whether it helped" in after
    assert f"A rollback of checkout was confirmed by {NAME} at " in who
    assert "not in any result" not in after + who
    assert RESPONDER not in after + who
    assert rows == [("succeeded",)]


async def test_six_threads_at_once_share_one_card(stage: Start) -> None:
    more = {"llm": {"default_provider": "triage"}}
    async with stage(says("never asked"), more) as running:
        asked = [await running.ask(QUESTION, running.newcomer()) for _ in range(6)]
        answers = await asyncio.gather(*(running.answer(one) for one in asked))
        rows = running.query("SELECT state FROM proposals")

    assert rows == [("pending",)]
    assert sum("is proposed below" in answer for answer in answers) == 1
    assert (
        sum(
            "Its card is in another thread of this channel; it is linked below" in answer
            and "Open proposal: rollback-deploy of checkout, <https://" in answer
            for answer in answers
        )
        == 5
    )
