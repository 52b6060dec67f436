"""How much of a growing answer may be appended to a stream. Sent text is never taken back.

Whole lines are final. Of the last line only a beginning is sent that no later text can change: no
open code, link or `<…>`, no word that may become an address, no start of a card-like line. The
caller compares anyway, and continues by edits if an earlier word changed.
"""

import re
import unicodedata

from bot.slack.text.card_spoofing import disclaimed
from bot.slack.text.limits import PART_BYTES
from bot.slack.text.links import LinkPolicy
from bot.slack.text.markdown import Line, lines
from bot.slack.text.split import FENCE_BYTES, split

_BUDGET_BYTES = PART_BYTES - FENCE_BYTES
_RUN = re.compile(r"`+")
# No line of ours that reads like a decision needs more to be known as one (`imitation`).
_TELLING_CHARS = 32
_OPEN_TAIL = re.compile(r"[\s*_~\\|]+$")


def growing(source: str, policy: LinkPolicy) -> str:
    """What may be sent of a cleaned text that goes on; a later one begins with it."""
    done, newline, last = source.lstrip("\n").rpartition("\n")
    told = list(lines(disclaimed(done) + newline, policy))
    shown = [line.safe for line in told]
    inside_code = bool(told and told[-1].after)
    calm = "" if inside_code else _calm(last)
    shown += [line.safe for line in lines(calm, policy)]
    return "\n".join(shown).rstrip()


def full_message(source: str, policy: LinkPolicy) -> str | None:
    """The beginning that fills a message, cut between lines outside code; None: it is not full.

    "" when the text is too long for one message and there is no such place.
    """
    told = list(lines(disclaimed(source), policy))
    if len("\n".join([line.safe for line in told]).encode()) < _BUDGET_BYTES:
        return None
    used = at = paragraph = 0
    for number, line in enumerate(told, start=1):
        used += len(line.safe.encode()) + 1
        if used > _BUDGET_BYTES:
            break
        if not line.after:
            at = number
            paragraph = at if not line.safe.strip() else paragraph
    return _first(source, paragraph if paragraph > at // 2 else at)


def whole_lines(source: str, policy: LinkPolicy) -> str:
    """Its lines that are complete, if they end outside code; else ""."""
    done = source[: source.rfind("\n") + 1]
    told: list[Line] = list(lines(disclaimed(done), policy))
    return done if told and not told[-1].after else ""


def one_message(source: str, policy: LinkPolicy) -> str | None:
    """The text as the one message that holds it; None when it takes more, or none."""
    pieces = split(disclaimed(source.strip("\n")), policy)
    return pieces[0].safe if len(pieces) == 1 and pieces[0].safe.strip() else None


def _first(source: str, count: int) -> str:
    return "".join(f"{line}\n" for line in source.split("\n")[:count])


def _calm(line: str) -> str:
    strange = [] if line.isascii() else [each for each in line if not each.isascii()]
    if any(unicodedata.category(each) in {"So", "Sk"} for each in strange):
        return ""
    runs = list(_RUN.finditer(line))
    while runs:
        run = runs.pop(0)
        same = next(
            (i for i, each in enumerate(runs) if len(each.group()) == len(run.group())), None
        )
        if same is None:
            line = line[: run.start()]
            break
        del runs[: same + 1]
    for opening, closing in (("<", ">"), ("[", ")")):
        at = line.rfind(opening)
        if at >= 0 and closing not in line[at:]:
            line = line[:at]
    line = _OPEN_TAIL.sub("", line[: line.rfind(" ") + 1])
    return line if len(line) >= _TELLING_CHARS else ""
