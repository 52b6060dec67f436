"""A model's line that could be taken for one of our cards, said to be what it is.

A card is blocks, and a model writes only text; but a line such as "✅ Confirmed by @lead" reads like
a decision. It is quoted, loses its signs and says whose words it is. Only whole lines are judged, so
what was said stays readable.
"""

import re
import unicodedata
from functools import lru_cache

from bot.domain.proposal import ProposalState
from bot.domain.proposal_words import title

LABEL = "_The model's words, no card:_"
_MARKS = re.compile(r"^[\s>#*_~`|•+-]*(?:\d{1,3}[.)]\s+)?")
_SHORTCODE = re.compile(r":[a-z][a-z0-9_+-]{1,40}:")
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
_LOUD_CLAIM = re.compile(rf"^(?:{_TITLE}|{_DECIDED})")
_LOUD = re.compile(r"^\s*(?:>\s*)*(?:#{1,6}\s|\*\*|__)")
# Letters of other scripts that look like Latin ones.
_ALIKE = str.maketrans(
    "аВвЕеЅѕІіЈјКкМмНОоРрСсТтУуХхԁΑαΒΕεΖΗΙιΚκΜΝνΟοΡρΤτΥυΧχ",
    "abbeessiijjkkmmhooppccttyyxxdaabeezhiikkmnvooppttyyxx",
)


def disclaimed(text: str) -> str:
    """The text with every line that reads like a card quoted and labelled."""
    return "\n".join(_disclaimed(line) for line in text.split("\n"))


@lru_cache(maxsize=2_048)
def _disclaimed(line: str) -> str:
    read = _read(line)
    loud = _LOUD.match(line) is not None and _LOUD_CLAIM.match(read.lstrip(_SIGN)) is not None
    if not loud and _CLAIM.search(read) is None:
        return line
    bare = "".join(" " if _is_sign(each) else each for each in _SHORTCODE.sub(" ", line))
    words = _SPACES.sub(" ", _EMPHASIS.sub("", _MARKS.sub("", bare))).strip()
    return f"> {LABEL} {words}"


def _read(line: str) -> str:
    """As somebody skims it: signs as one mark, no emphasis, look-alikes as what they look like."""
    folded = unicodedata.normalize("NFKC", line).translate(_ALIKE)
    skimmed = _SHORTCODE.sub(_SIGN, folded.casefold())
    marked = "".join(_SIGN if _is_sign(each) else each for each in skimmed)
    visible = "".join(each for each in marked if unicodedata.category(each) != "Cf")
    plain = _EMPHASIS.sub("", _MARKS.sub("", visible))
    return _SPACES.sub(" ", _SIGNS.sub(_SIGN, plain)).strip(" ")


def _is_sign(char: str) -> bool:
    return not char.isascii() and (char == "\ufe0f" or unicodedata.category(char) in {"So", "Sk"})
