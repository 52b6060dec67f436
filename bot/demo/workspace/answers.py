"""Answering an interaction with a message: to the one who acted, or to the channel."""

from bot.demo.workspace import content
from bot.demo.workspace.arguments import Arguments
from bot.demo.workspace.json_access import JsonObject
from bot.demo.workspace.posting import Posting
from bot.demo.workspace.stored_messages import Ephemeral


def read_answer(body: JsonObject) -> content.Content:
    """What it says. Raises SlackRefused."""
    said = content.read_content(
        Arguments({name: value for name, value in body.items() if value is not None})
    )
    content.check_post_length(said)
    return said


def show_answer(
    posting: Posting, body: JsonObject, user: str, channel: str, thread_ts: str | None
) -> None:
    """Show it to that person alone, unless it says `in_channel`. Raises SlackRefused."""
    said = read_answer(body)
    message = posting.bot_message(
        channel, said.text or content.NO_PREVIEW, said.blocks or (), thread_ts
    )
    if body.get("response_type") == "in_channel":
        posting.post(message)
    else:
        posting.whisper(Ephemeral(message, user, shown=True))
