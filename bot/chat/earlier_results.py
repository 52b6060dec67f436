"""Which earlier tool results a request carries: the newest. All answers stay.

An answer rests on the results of its own turn. Older results can be read again by a call. The raw
part moves in steps of several turns, so that the prefix which vendors cache stays the same.
"""

from collections.abc import Sequence
from typing import Final

from adapters.llm.first_look.calls import is_of_look
from adapters.llm.first_look.digest import MOST_TOKENS as LOOK_TOKENS
from adapters.llm.messages import Message
from bot.chat.window import BYTES_PER_TOKEN, folded, utf8_bytes
from tools.attached import READ_ATTACHMENT
from tools.contract import PROPOSE_TOOL_ID

# More is folded until half of it is left.
MOST_TOKENS: Final = 16_000
_MOST_BYTES: Final = round(MOST_TOKENS * BYTES_PER_TOKEN)
_LOOK_BYTES: Final = round(LOOK_TOKENS * BYTES_PER_TOKEN)
# Files come with their message alone; nothing is proposed again.
_CANNOT_BE_CALLED_AGAIN: Final = frozenset({READ_ATTACHMENT, PROPOSE_TOOL_ID})

Turn = Sequence[Message]


def fold_earlier(turns: Sequence[Turn]) -> tuple[Sequence[Turn], bool]:
    """The turns, oldest first, with the results of the older ones folded.

    And whether the newest of them is why something is folded for the first time.
    """
    sizes = [_bytes_of(turn) for turn in turns]
    count = _folded_turns(sizes)
    begins = count > 0 == _folded_turns(sizes[:-1])
    return [*([_fold(each) for each in turn] for turn in turns[:count]), *turns[count:]], begins


def _fold(message: Message) -> Message:
    result = message.tool_result
    is_kept = result is None or result.name in _CANNOT_BE_CALLED_AGAIN
    return message if is_kept else folded(message)


def _folded_turns(sizes: Sequence[int]) -> int:
    """How many of the oldest turns are folded.

    Stable for the same turns; never includes the newest.
    """
    count, held = 0, 0
    for at, size in enumerate(sizes):
        held += size
        least = _MOST_BYTES // 2 if held > _MOST_BYTES else held
        while count < at and held > least:
            held -= sizes[count]
            count += 1
    return count


def _bytes_of(turn: Turn) -> int:
    """What its results take that could be folded; a model reads a digest of a first look's."""
    looks = {call.id for message in turn for call in message.tool_calls if is_of_look(call)}
    found = [m.tool_result for m in turn if m.tool_result is not None]
    looked = sum(utf8_bytes(each.content) for each in found if each.call_id in looks)
    asked = sum(
        utf8_bytes(each.content)
        for each in found
        if each.call_id not in looks and each.name not in _CANNOT_BE_CALLED_AGAIN
    )
    return asked + min(looked, _LOOK_BYTES)
