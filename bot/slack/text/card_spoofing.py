"""Labels a model's line that looks like one of our cards.

Cards are blocks and a model writes only text. But a line such as "✅ Confirmed by @lead" reads like
a decision. Such a line is quoted and labelled, and loses its emoji. Only whole lines are judged.
"""

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise

from bot.domain.proposal import ProposalState, title
from tools.hidden_texts import LOOK_ALIKES

LABEL = "_The model's words, no card:_"
_MARKS = re.compile(r"^[\s>#*_~`|•+-]*(?:\d{1,3}[.)]\s+)?")
_SHORTCODE = re.compile(r":[a-z][a-z0-9_+-]{0,40}:")
_EMPHASIS = re.compile(r"[*_~`|]")
_SPACES = re.compile(r"\s+")
_SIGN = "\x01"
_SIGNS = re.compile(rf"[{_SIGN}\s]*{_SIGN}[{_SIGN}\s]*")
# The text of cards (`bot.slack.views.cards`), and other text that reads like a person's decision.
_DECIDED = r"(?:confirmed|approved|rejected|authori[sz]ed|expired|superseded|proposal)\b"
_CARD_TITLES = {
    title(state, rehearsal=r).casefold() for state in ProposalState for r in (False, True)
}
_TITLE = rf"(?:{'|'.join(sorted(_CARD_TITLES))}|done) ?:"
_BY = r"(?:confirmed|approved|rejected|authori[sz]ed|edited)(?: and \w+)? by\b"
_FIELD = r"(?:may decide|waiting for a decision|proposal p_|(?:press|click) (?:confirm|reject))\b"
_CLAIM = re.compile(rf"^(?:{_BY}|{_FIELD})|{_SIGN}(?:{_DECIDED}|{_TITLE}|{_BY}|{_FIELD})")
_STATED = re.compile(
    r"^(?:status|state|decision|result|outcome|approval) ?: ?(?:confirmed|approved|rejected|authori[sz]ed|granted)\b"
)
# A line that a sign leads claims a decision if it says so anywhere, and one by each person that it
# mentions.
_LED_CLAIM = re.compile(
    rf"^{_SIGN}(?:.*\b(?:confirm(?:ed|ation)|approv(?:ed|al)|authori[sz](?:ed|ation)|signed off|greenlit|"
    r"granted|accepted|executed|it succeeded|it failed|nothing was run|nobody decided)\b"
    r"|.*\b(?:rejected|denied|declined|cancell?ed|edited|decided) by\b"
    r"|(?:succeeded|waiting for)\b|.*(?:^|\s|<)@\w)"
)
_BUTTONS = re.compile(rf"^[{_SIGN}\[\](): ]*confirm[{_SIGN}\[\](): ]+(?:edit\W+)?reject\W*$")
_BOXED = re.compile(rf"\[(?:x|{_SIGN})\]|\({_SIGN}\)|\u221a")  # a ticked box, a root as a tick
_SPELT = re.compile(r"\b(?:\w ){3,}\w\b")
_LOUD_CLAIM = re.compile(rf"^(?:{_TITLE}|{_DECIDED})")
_LOUD = re.compile(r"^\s*(?:>\s*)*(?:#{1,6}\s|\*\*|__)")
# In a line of ASCII without a sign, a claim has one of these once all but its letters is removed,
# with any text between them. No reader joins letters across a word.
_NO_LETTERS = dict.fromkeys(each for each in range(128) if not chr(each).isalpha())
_TELLING = re.compile(
    rf"confirm|approved|reject|authori[sz]ed|expired|superseded|proposal|edited|granted|maydecide"
    rf"|waitingforadecision|done|{'|'.join(re.sub('[^a-z]', '', each) for each in sorted(_CARD_TITLES))}"
)
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")


def disclaimed(text: str) -> str:
    """The text with every line that reads like a card quoted and labelled."""
    lines = text.split("\n")
    alone: set[str] = set()
    if _may_hold_sign(text):
        told = [line for line in lines if line.strip()]
        alone = {below for above, below in pairwise(told) if _read(above) == _SIGN}
    return "\n".join(_disclaimed(line, led=line in alone) for line in lines)


@lru_cache(maxsize=2_048)
def _disclaimed(line: str, *, led: bool) -> str:
    if not led and not _may_claim(line):
        return line
    read = _read(line)
    loud = _LOUD.match(line) is not None and _LOUD_CLAIM.match(read.lstrip(_SIGN)) is not None
    judged = _SIGN + read.lstrip(_SIGN) if led else read
    claims = (_CLAIM, _LED_CLAIM, _STATED, _BUTTONS)
    if not loud and not any(claim.search(judged) for claim in claims):
        return line
    bare = "".join(" " if _is_sign(each) else each for each in _SHORTCODE.sub(" ", line))
    words = _SPACES.sub(" ", _EMPHASIS.sub("", _MARKS.sub("", bare))).strip()
    return f"> {LABEL} {words}"


def _may_claim(line: str) -> bool:
    return _may_hold_sign(line) or _TELLING.search(line.lower().translate(_NO_LETTERS)) is not None


def _may_hold_sign(text: str) -> bool:
    if not text.isascii() or _SIGN in text:
        return True
    plain = text.lower()
    return "[x]" in plain or _SHORTCODE.search(plain) is not None


# A growing answer is read again at every edit; all its lines but the last are as before.
@lru_cache(maxsize=2_048)
def _read(line: str) -> str:
    ascii_only = line.isascii()
    folded = line if ascii_only else unicodedata.normalize("NFKD", line).translate(LOOK_ALIKES)
    skimmed = _SHORTCODE.sub(_SIGN, folded.casefold())
    visible = skimmed if ascii_only else _BEYOND_ASCII.sub(_visible, skimmed)
    boxed = _BOXED.sub(_SIGN, _MARKS.sub("", visible))
    plain = _EMPHASIS.sub("", boxed.replace("|", " "))
    spelt = _SPELT.sub(lambda run: run.group().replace(" ", ""), plain)
    return _SPACES.sub(" ", _SIGNS.sub(_SIGN, spelt)).strip(" ")


def _visible(found: re.Match[str]) -> str:
    char = found.group()
    if _is_sign(char):
        return _SIGN
    return "" if unicodedata.category(char) in {"Cf", "Mn"} else char


def _is_sign(char: str) -> bool:
    return not char.isascii() and (char == "\ufe0f" or unicodedata.category(char) in {"So", "Sk"})
