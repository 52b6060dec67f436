"""The two buttons below an answer on the wire: in both transports, and through a whole bot."""

import pytest

from bot.demo.workspace.block_rules import check_view
from bot.demo.workspace.errors import CannotDoThat
from bot.demo.workspace.seeds import CHECKOUT, GUEST, MEMBER, RESPONDER, STRANGER
from bot.domain.feedback import Vote
from bot.domain.session import TurnState
from bot.slack.listeners import replies
from bot.slack.text.blocks import actions
from bot.slack.views.modals import FEEDBACK_ACTION, feedback_buttons
from tests.fixtures_service import API_KEY, Start, stage
from tests.scenario.test_slack_ingress import Bot, bot, post, workspace
from tests.slack_ingress import NOW
from tests.stage import says

__all__ = ["bot", "stage", "workspace"]


async def test_a_vote_and_its_reason_in_both_transports(bot: Bot) -> None:
    root = await bot.workspace.say(MEMBER, CHECKOUT, "checkout is slow")
    ask = await bot.with_session(root)
    await bot.sessions.finish_turn(ask.turn_id, TurnState.ANSWERED, [], [], NOW)
    answer = await post(bot, root, [actions(feedback_buttons(ask.turn_id))])

    async def press(user: str, vote: Vote) -> None:
        await bot.workspace.click(user, answer, f"{FEEDBACK_ACTION}:{vote.value}")
        await bot.settled()

    await press(GUEST, Vote.UP)
    await press(GUEST, Vote.UP)
    await press(STRANGER, Vote.UP)
    await press(MEMBER, Vote.DOWN)
    (form,) = bot.workspace.modals_of(MEMBER)
    check_view({k: v for k, v in form.items() if k in _SENT}, "modal")
    ack = await bot.workspace.submit(MEMBER, str(form["id"]), {"text": "the wrong service"})

    assert ack.ok
    assert {(o.by, o.vote, o.reason) for o in bot.inside.feedback.rows.values()} == {
        (GUEST, Vote.UP, ""),
        (MEMBER, Vote.DOWN, "the wrong service"),
    }
    assert bot.whispers(GUEST) == [replies.THANKS]
    assert bot.whispers(STRANGER) == [replies.EXTERNAL]
    with pytest.raises(CannotDoThat):
        await bot.workspace.click(MEMBER, answer, f"{FEEDBACK_ACTION}:sideways")


_SENT = {"type", "callback_id", "title", "submit", "close", "blocks", "private_metadata"}
_REASON = f"<!channel> *wrong* <https://evil.test|ok> {API_KEY} `x`"


@pytest.mark.parametrize("stream", ["edit", "native"])
async def test_feedback_is_shown_to_admins_redacted_and_audited(stage: Start, stream: str) -> None:
    async with stage(says("The pool is full."), {"slack": {"stream": stream}}) as running:
        asked = await running.ask("@kortex why?", MEMBER)
        await running.answer(asked)
        (part,) = running.parts(asked)
        for _ in range(2):
            await running.press(MEMBER, part, f"{FEEDBACK_ACTION}:down")
        form, _ = await running.workspace.wait_for(lambda: running.workspace.modals_of(MEMBER))
        await running.workspace.submit(MEMBER, str(form["id"]), {"text": _REASON})
        quality = await running.private_reply(
            RESPONDER, running.workspace.command(RESPONDER, CHECKOUT, "quality")
        )
        refused = await running.private_reply(
            MEMBER, running.workspace.command(MEMBER, CHECKOUT, "quality")
        )
        kinds = running.query("SELECT body FROM audit WHERE kind = 'feedback.given' ORDER BY seq")

        assert "24 hours: openai 👍 0, 👎 1, of 1 answers" in quality
        assert "<!channel>" not in quality
        assert "<https://evil" not in quality
        assert API_KEY not in quality + running.rows() + running.sent()
        assert "Only admins can see how answers were rated: @responder" in refused
        assert [('"explained":false' in b, "wrong" in b) for (b,) in kinds] == [
            (True, False),
            (False, False),
        ]
        assert running.query("SELECT vote FROM feedback") == [("down",)]
