"""A model's line that could be taken for one of our cards, said to be what it is.

A card is blocks, and a model writes only text; but a line such as "✅ Confirmed by @lead" reads like
a decision. It is quoted, loses its signs and says whose words it is. Only whole lines are judged, so
what was said stays readable.
"""

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise

from bot.domain.proposal import ProposalState, title

LABEL = "_The model's words, no card:_"
_MARKS = re.compile(r"^[\s>#*_~`|•+-]*(?:\d{1,3}[.)]\s+)?")
_SHORTCODE = re.compile(r":[a-z][a-z0-9_+-]{0,40}:")
_EMPHASIS = re.compile(r"[*_~`|]")
_SPACES = re.compile(r"\s+")
_SIGN = "\x01"
_SIGNS = re.compile(rf"[{_SIGN}\s]*{_SIGN}[{_SIGN}\s]*")
# What stands on cards (`bot.slack.showing.cards`), and what else reads as somebody's decision.
_DECIDED = r"(?:confirmed|approved|rejected|authori[sz]ed|expired|superseded|proposal)\b"
_TITLE = rf"(?:{'|'.join(title(state).casefold() for state in ProposalState)}|done) ?:"
_BY = r"(?:confirmed|approved|rejected|authori[sz]ed|edited)(?: and \w+)? by\b"
_FIELD = r"(?:may decide|waiting for a decision|proposal p_|(?:press|click) (?:confirm|reject))\b"
_CLAIM = re.compile(rf"^(?:{_BY}|{_FIELD})|{_SIGN}(?:{_DECIDED}|{_TITLE}|{_BY}|{_FIELD})")
_STATED = re.compile(
    r"^(?:status|state|decision|result|outcome|approval) ?: ?(?:confirmed|approved|rejected|authori[sz]ed|granted)\b"
)
# A line that a sign leads tells of a decision wherever it says so, and of one by whoever it mentions.
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
# Letters of other scripts that look like Latin ones.
_ALIKE = str.maketrans(
    "аВвЕеЅѕІіЈјКкМмНОоРрСсТтУуХхԁΑαΒΕεΖΗΙιΚκΜΝνΟοΡρΤτΥυΧχ",
    "abbeessiijjkkmmhooppccttyyxxdaabeezhiikkmnvooppttyyxx",
)


def disclaimed(text: str) -> str:
    """The text with every line that reads like a card quoted and labelled."""
    lines = text.split("\n")
    told = [line for line in lines if line.strip()]
    alone = {below for above, below in pairwise(told) if _read(above) == _SIGN}
    return "\n".join(_disclaimed(line, led=line in alone) for line in lines)


@lru_cache(maxsize=2_048)
def _disclaimed(line: str, *, led: bool) -> str:
    """`led`: a sign stands alone on the line above."""
    read = _read(line)
    loud = _LOUD.match(line) is not None and _LOUD_CLAIM.match(read.lstrip(_SIGN)) is not None
    judged = _SIGN + read.lstrip(_SIGN) if led else read
    claims = (_CLAIM, _LED_CLAIM, _STATED, _BUTTONS)
    if not loud and not any(claim.search(judged) for claim in claims):
        return line
    bare = "".join(" " if _is_sign(each) else each for each in _SHORTCODE.sub(" ", line))
    words = _SPACES.sub(" ", _EMPHASIS.sub("", _MARKS.sub("", bare))).strip()
    return f"> {LABEL} {words}"


def _read(line: str) -> str:
    """As somebody skims it: signs as one mark, no emphasis, look-alikes as what they look like."""
    folded = unicodedata.normalize("NFKD", line).translate(_ALIKE)
    skimmed = _SHORTCODE.sub(_SIGN, folded.casefold())
    marked = "".join(_SIGN if _is_sign(each) else each for each in skimmed)
    visible = "".join(each for each in marked if unicodedata.category(each) not in {"Cf", "Mn"})
    boxed = _BOXED.sub(_SIGN, _MARKS.sub("", visible))
    plain = _EMPHASIS.sub("", boxed.replace("|", " "))
    spelt = _SPELT.sub(lambda run: run.group().replace(" ", ""), plain)
    return _SPACES.sub(" ", _SIGNS.sub(_SIGN, spelt)).strip(" ")


def _is_sign(char: str) -> bool:
    return not char.isascii() and (char == "\ufe0f" or unicodedata.category(char) in {"So", "Sk"})
