"""The one final event of a turn: its words redacted, its claims checked, what people should know of it."""

import asyncio
from collections.abc import Sequence

from bot.chat.attachments import unread
from bot.chat.conversation import Conversation
from bot.chat.turn_result import finished
from bot.chat.window import newest_note
from bot.domain.claims import Claim
from bot.domain.session import Ask
from bot.domain.turn_events import TurnEnd, TurnFinished
from tools.redactor import Redactor


async def final_of(
    ask: Ask, end: TurnEnd, talk: Conversation, before: Sequence[str], redactor: Redactor
) -> TurnFinished:
    """From what the loop gathered; `before` was to be known already. Raises RedactionFailed."""
    text = redactor.redact(talk.text)
    rounds = (*talk.aside, *talk.rounds)
    notices = newest_note([*before, *(n for r in rounds for n in r.notices)])
    notices += unread(ask.files, talk.evidence, talk.request)
    if end is TurnEnd.FAILED:
        notices.append(talk.rounds[-1].error_message)
    asked = {o.record.tool_call_id: o.record.arguments or {} for o in talk.outcomes}

    # What people said in the thread is theirs, and may be repeated as such.
    # Milliseconds to a tenth of a second of work: not on the loop.
    def check() -> tuple[str, Sequence[Claim]]:
        from bot.chat.claims.answer import checked  # 1 MB that waits for the first answer

        people = talk.people_said or ask.text
        return checked(text, talk.evidence, asked, people, talk.own_words)

    marked, claims = await asyncio.to_thread(check)
    return finished(end, talk, marked, notices, claims)
