"""How much of a text that is still being written can be shown: what no later word can change.

A secret is known by its end as often as by its beginning; what may yet become one is held back.
"""

import re
from typing import Final

from bot.privacy.disguises import HIDDEN

_OPEN_BLOCK: Final = re.compile(r"-----BEGIN [A-Z0-9 ]*(?:-----)?")
_BLOCK_END: Final = re.compile(r"-----END [A-Z0-9 ]*-----")
# Whatever follows such a name on its line, or on the next one, may be its value or a part of it.
_NAMED: Final = re.compile(
    r"(?i)[^\s]*(?:cookie|authori[sz]ation|bearer|basic|passw|passphrase|passcode|pwd|secret|token|key"
    r"|credential|private|access|auth|identified|machine|login|curl|mysql|mariadb|sshpass|psql|redis-cli"
    r"|mongo|docker|helm|kind:|data:|phone|tel|mobile|cell|desk|fax|call|dial|sms|ssn|social|cvv|cvc"
    r"|security|AWS4)"
)
# Groups of digits, or of capitals and digits as in an IBAN, may go on: a card, a telephone number.
_GROUPS: Final = re.compile(r"(?:[+(]?[A-Z0-9()]{1,6}[ .-]{1,2}){1,12}[A-Z0-9()]*$")
# So few letters give nothing away, and a word that stops growing must not wait for a space.
_PLAIN_WORD: Final = re.compile(r"[A-Za-z]?[a-z]{0,7}")
_LONGEST_GROUPS_CHARS: Final = 80


def showable(text: str) -> str:
    """What may be shown of it now: what is settled, and the beginning of a plain word after that."""
    at = settled(text)
    return text if _PLAIN_WORD.fullmatch(text, at) else text[:at]


def settled(text: str) -> int:
    """How many characters from the start are settled; the rest waits while more is coming."""
    at = _word_start(text, len(text))
    opened = [m.start() for m in _OPEN_BLOCK.finditer(text)]
    if opened:
        closed = [m.end() for m in _BLOCK_END.finditer(text)]
        if not closed or closed[-1] < opened[-1]:
            at = min(at, opened[-1])
    lines = text.rfind("\n", 0, max(0, text.rfind("\n"))) + 1
    named = _NAMED.search(text, lines)
    if named is not None:
        at = min(at, named.start())
    hidden = None if text.isascii() else HIDDEN.search(text, lines)
    if hidden is not None:
        at = min(at, _word_start(text, hidden.start()))
    groups = _GROUPS.search(text, max(0, len(text) - _LONGEST_GROUPS_CHARS))
    if groups is not None:
        at = min(at, _word_start(text, groups.start()))
    return at


def _word_start(text: str, at: int) -> int:
    while at > 0 and not text[at - 1].isspace():
        at -= 1
    return at
