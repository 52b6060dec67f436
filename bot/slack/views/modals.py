"""The modals: a tool's result, and the reason of a rejection. Built within Slack's limits.

Limits: title 24, 100 blocks, plain_text_input 3,000, private_metadata 3,000
(https://docs.slack.dev/reference/views). Content goes into preformatted rich text, where nothing
is interpreted: no mention, link or image comes alive.
"""

import contextlib
import json
import re
from collections.abc import Sequence
from typing import Final, TypeAlias

from pydantic import JsonValue

from bot.domain.feedback import Vote
from bot.domain.ids import TurnId
from bot.domain.turn_events import Evidence
from bot.ports.proposals import FormField
from bot.slack.text.blocks import Block, button
from bot.slack.text.mrkdwn import visible
from bot.slack.views.tool_chips import duration, short

View: TypeAlias = dict[str, JsonValue]

REJECT_CALLBACK = "proposal:reject:reason"
REASON_BLOCK = "reason"
REASON_INPUT = "text"
MAX_REASON = 500
REFUSED = "proposal:refused"
EDIT_CALLBACK = "proposal:edit:params"
_INPUT_CHARS = 3_000
_LINE_CHARS = 100
_TITLE_MAX = 24
_BLOCK_CHARS = 2_800
# 64 KiB of plain result fit in 24 blocks; a view may weigh 250 kB (`view_too_large`).
_MAX_CONTENT_BLOCKS = 40
_MAX_CONTENT_BYTES = 200_000


def view_of(title: str, blocks: list[JsonValue]) -> View:
    return _modal("evidence", title, blocks)


def evidence_view(evidence: Evidence) -> View:
    """One numbered result as JSON, whole as far as it fits, with a note when it does not."""
    text = _shown(evidence.content)
    parts = fitting_parts(text)
    blocks: list[JsonValue] = [
        paragraph(headline(evidence)),
        *(preformatted(part) for part in parts or ["(empty)"]),
    ]
    kept = sum(map(len, parts))
    if kept < len(text):
        blocks.append(paragraph(f"Shown: the first {kept:,} of {len(text):,} characters."))
    return view_of(f"Result E{evidence.number}", blocks)


def raw_view(parts: Sequence[tuple[str, str]]) -> View:
    """JSON texts under their labels, whole as far as they fit; empty ones are left out."""
    blocks: list[JsonValue] = []
    for label, text in parts:
        if text:
            blocks.append(paragraph(label))
            blocks += [preformatted(part) for part in fitting_parts(text)]
    return _modal("proposal:raw", "Raw JSON", blocks)


def refusal_view(text: str) -> View:
    """Why a press did nothing."""
    return _modal(REFUSED, "Nothing was done", [paragraph(text)])


def reject_view(private_metadata: str) -> View:
    """Asks for an optional reason, which goes back to the model."""
    asked = _reason_input("Why? (helps the next proposal)") | {"optional": True}
    return _form(
        REJECT_CALLBACK, "Reject the proposal", [asked], "Back", "Reject", private_metadata
    )


def reason_view(private_metadata: str) -> View:
    """Asks why an answer did not help."""
    hint = "Admins see it without your name. Your vote already counts."
    asked = _reason_input("Why did this answer not help?")
    asked["hint"] = {"type": "plain_text", "text": hint}
    return _form(FEEDBACK_CALLBACK, "What was wrong?", [asked], "Skip", "Send", private_metadata)


def _modal(callback: str, title: str, blocks: list[JsonValue], close: str = "Close") -> View:
    return {
        "type": "modal",
        "callback_id": callback,
        "title": {"type": "plain_text", "text": title[:_TITLE_MAX]},
        "close": {"type": "plain_text", "text": close},
        "blocks": blocks,
    }


def _form(
    callback: str, title: str, blocks: list[JsonValue], close: str, submit: str, metadata: str
) -> View:
    button: View = {"type": "plain_text", "text": submit}
    return _modal(callback, title, blocks, close) | {"submit": button, "private_metadata": metadata}


def _reason_input(label: str) -> View:
    return {
        "type": "input",
        "block_id": REASON_BLOCK,
        "label": {"type": "plain_text", "text": label},
        "element": {
            "type": "plain_text_input",
            "action_id": REASON_INPUT,
            "multiline": True,
            "max_length": MAX_REASON,
        },
    }


def edit_view(private_metadata: str, action: str, fields: Sequence[FormField]) -> View:
    """The parameters of a proposal, to be changed. Raises ValueError when one is too long."""
    if any(len(field.value) > _INPUT_CHARS for field in fields):
        raise ValueError(f"an input holds {_INPUT_CHARS} characters")
    blocks: list[JsonValue] = [
        paragraph(
            f"{visible(action)}: the old proposal is closed, and a new card asks for a decision."
        ),
        *(_input(number, field) for number, field in enumerate(fields)),
    ]
    return _form(EDIT_CALLBACK, "Edit the proposal", blocks, "Back", "Propose", private_metadata)


def field_block(number: int) -> str:
    """The block of the n-th field of `edit_view`; its input is called the same."""
    return f"field:{number}"


def _input(number: int, field: FormField) -> JsonValue:
    element: dict[str, JsonValue] = {
        "type": "plain_text_input",
        "action_id": field_block(number),
        "multiline": field.kind == "json" or len(field.value) > _LINE_CHARS,
        "max_length": _INPUT_CHARS,
    }
    if field.value:
        element["initial_value"] = field.value
    return {
        "type": "input",
        "block_id": field_block(number),
        "optional": field.optional,
        "label": {"type": "plain_text", "text": visible(f"{field.label} ({field.kind})")[:2_000]},
        "element": element,
    }


def fitting_parts(text: str) -> list[str]:
    """A long text in pieces of a block each, as far as a view may weigh."""
    parts: list[str] = []
    room = _MAX_CONTENT_BYTES
    for at in range(0, min(len(text), _BLOCK_CHARS * _MAX_CONTENT_BLOCKS), _BLOCK_CHARS):
        part = text[at : at + _BLOCK_CHARS]
        room -= len(json.dumps(part))  # what it weighs on the wire
        if room < 0:
            break
        parts.append(part)
    return parts


def headline(evidence: Evidence) -> str:
    """`get_logs · 12 lines (ok, 40 ms)`."""
    outcome = "ok" if evidence.ok else "failed"
    cut = ", the tool cut it" if evidence.truncated else ""
    what = " · ".join(filter(None, (short(evidence.tool), evidence.summary)))
    line = f"{what} ({outcome}, {duration(evidence.latency_ms)}{cut})"
    return visible(line)[:_BLOCK_CHARS]


def _shown(content: str) -> str:
    with contextlib.suppress(ValueError, RecursionError):
        content = json.dumps(json.loads(content), indent=2, ensure_ascii=False)
    return visible(content)


def paragraph(text: str) -> JsonValue:
    """Plain text, 3,000 characters at most, none of them empty."""
    return {"type": "section", "text": {"type": "plain_text", "text": text, "emoji": False}}


def preformatted(text: str) -> JsonValue:
    return {
        "type": "rich_text",
        "elements": [
            {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": text}]}
        ],
    }


FEEDBACK_ACTION: Final = "answer:feedback"
FEEDBACK_CALLBACK: Final = "answer:feedback:reason"
_VALUE: Final = re.compile(r"(up|down)\|(turn:[^|]{1,300})", re.ASCII)


def feedback_buttons(turn_id: TurnId) -> tuple[Block, Block]:
    """👍 and 👎. The value names the vote and the answer."""
    return (
        _button("👍", "This answer helped", Vote.UP, turn_id),
        _button("👎", "This answer did not help; say why", Vote.DOWN, turn_id),
    )


def vote_of(value: str) -> tuple[Vote, TurnId] | None:
    """What a button's value says; None for one that is not ours."""
    found = _VALUE.fullmatch(value)
    return (Vote(found[1]), TurnId(found[2])) if found else None


def _button(text: str, spoken: str, vote: Vote, turn_id: TurnId) -> Block:
    # Slack wants another action id for each element of a row.
    action_id = f"{FEEDBACK_ACTION}:{vote.value}"
    return button(text, action_id, f"{vote.value}|{turn_id}", spoken=spoken)
