"""Lengths of time in the words of a question: "since 15 minutes", "half an hour ago", "last 2h"."""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

_WORDS: Final = {
    "a": 1.0, "an": 1.0, "one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0,
    "six": 6.0, "seven": 7.0, "eight": 8.0, "nine": 9.0, "ten": 10.0, "twelve": 12.0,
    "fifteen": 15.0, "twenty": 20.0, "thirty": 30.0, "forty": 40.0, "forty-five": 45.0,
    "sixty": 60.0, "ninety": 90.0, "a couple of": 2.0, "half": 0.5, "half a": 0.5, "half an": 0.5,
    "a half": 0.5, "quarter of an": 0.25, "a quarter of an": 0.25, "quarter": 0.25,
    "three quarters of an": 0.75,
}  # fmt: skip
_UNIT_S: Final = {"m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_LONGEST: Final = timedelta(days=30)  # beyond it no tool reads a range

_UNIT: Final = r"(?:minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w)"
_WORD: Final = "|".join(sorted(_WORDS, key=len, reverse=True))
_NUMBER: Final = r"[0-9]{1,9}(?:[.,][0-9]{1,3})?"
_LENGTH: Final = (
    rf"(?:{_NUMBER}[ -]?|(?:{_WORD})[ -]){_UNIT}(?: ?(?:and )?[0-9]{{1,3}} ?(?:minutes?|mins?|m))?"
)
_ABOUT: Final = r"(?:(?:about|around|roughly|over|more than|at least|almost|nearly|only) )?"

_BETWEEN: Final = re.compile(
    rf"\b(?:between|from) ({_LENGTH}|[0-9]{{1,3}})(?: ago)? (?:and|to|until|till) ({_LENGTH}) ago\b"
)
_SINCE: Final = re.compile(
    rf"\b(?:since|for) {_ABOUT}(?:the )?(?:(?:last|past) )?{_ABOUT}({_LENGTH})\b(?! ago)"
)
_LAST: Final = re.compile(
    rf"\b(?:last|past|previous) {_ABOUT}({_LENGTH}|(?:minute|min|m|hour|h|day|week)s?)\b"
)
_AGO: Final = re.compile(rf"\b({_LENGTH}) ago\b")
_PARTS: Final = re.compile(
    rf"({_NUMBER}|{_WORD})?[ -]?({_UNIT})(?: ?(?:and )?([0-9]{{1,3}}) ?(?:minutes?|mins?|m))?"
)


@dataclass(frozen=True, slots=True)
class Lasting:
    """From `begin` ago to `end` ago. `lasts`: something goes on since then, and began with it."""

    begin: timedelta
    end: timedelta
    lasts: bool


def lasting_in(text: str) -> Lasting | None:
    """What a text in lower case says; None without a length, or with one of more than 30 days."""
    if found := _BETWEEN.search(text):
        end = _length(found[2])
        begin = _length(found[1]) or _length(found[1] + " " + found[2].split()[-1])
        return Lasting(begin, end, lasts=False) if begin and end and begin > end else None
    for pattern, lasts in ((_SINCE, True), (_LAST, False), (_AGO, True)):
        if found := pattern.search(text):
            length = _length(found[1])
            return Lasting(length, timedelta(0), lasts) if length else None
    return None


def _length(text: str) -> timedelta | None:
    found = _PARTS.fullmatch(text)
    if found is None:
        return None
    amount = found[1] or "1"
    number = _WORDS[amount] if amount in _WORDS else float(amount.replace(",", "."))
    seconds = number * _UNIT_S[found[2][0]] + int(found[3] or 0) * 60.0
    return timedelta(seconds=seconds) if 0 < seconds <= _LONGEST.total_seconds() else None
