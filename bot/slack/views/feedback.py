"""Whether an answer helped: the two buttons below it, and the form that asks why not."""

import re
from typing import Final

from bot.domain.feedback import Vote
from bot.domain.ids import TurnId
from bot.slack.text.blocks import Block, button
from bot.slack.views.modals import MAX_REASON, REASON_BLOCK, REASON_INPUT, View

FEEDBACK_ACTION: Final = "answer:feedback"
FEEDBACK_CALLBACK: Final = "answer:feedback:reason"
_VALUE: Final = re.compile(r"(up|down)\|(turn:[^|]{1,300})", re.ASCII)


def feedback_buttons(turn_id: TurnId) -> tuple[Block, Block]:
    """👍 and 👎; a press brings back which of both, and of which answer."""
    return (
        _button("👍", "This answer helped", Vote.UP, turn_id),
        _button("👎", "This answer did not help; say why", Vote.DOWN, turn_id),
    )


def vote_of(value: str) -> tuple[Vote, TurnId] | None:
    """What a button's value says; None for one that is not ours."""
    found = _VALUE.fullmatch(value)
    return (Vote(found[1]), TurnId(found[2])) if found else None


def reason_view(private_metadata: str) -> View:
    """Asks why an answer did not help."""
    return {
        "type": "modal",
        "callback_id": FEEDBACK_CALLBACK,
        "private_metadata": private_metadata,
        "title": {"type": "plain_text", "text": "What was wrong?"},
        "submit": {"type": "plain_text", "text": "Send"},
        "close": {"type": "plain_text", "text": "Skip"},
        "blocks": [
            {
                "type": "input",
                "block_id": REASON_BLOCK,
                "label": {"type": "plain_text", "text": "Why did this answer not help?"},
                "hint": {
                    "type": "plain_text",
                    "text": "Admins read it, without your name. Your vote counts already.",
                },
                "element": {
                    "type": "plain_text_input",
                    "action_id": REASON_INPUT,
                    "multiline": True,
                    "max_length": MAX_REASON,
                },
            }
        ],
    }


def _button(text: str, spoken: str, vote: Vote, turn_id: TurnId) -> Block:
    # Slack wants another action id for each element of a row.
    action_id = f"{FEEDBACK_ACTION}:{vote.value}"
    return button(text, action_id, f"{vote.value}|{turn_id}", spoken=spoken)
