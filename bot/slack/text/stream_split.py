"""How much of a growing answer may be appended to a stream. Sent text is never taken back.

Whole lines are final. Of the last line only a beginning is sent that no later text can change: no
open code, link or `<…>`, no word that may become an address, no start of a card-like line. The
caller compares anyway, and continues by edits if an earlier word changed.
"""

import re
import unicodedata

from bot.slack.text.card_spoofing import disclaimed
from bot.slack.text.links import LinkPolicy
from bot.slack.text.markdown import lines

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
