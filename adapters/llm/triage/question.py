"""What a question asks: about whom, about when, and for what. What was assumed is said."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

Topic = Literal["cause", "logs", "deploys", "greeting"]

USUAL_WINDOW: Final = timedelta(minutes=30)
_BEFORE_CLAIMED: Final = timedelta(minutes=1)  # "about 14:46": what began with it is inside
_AROUND: Final = timedelta(minutes=30)
_LONGEST: Final = timedelta(hours=24)

_CLOCK: Final = r"(\d{1,2})(?:[:.](\d\d))?\s*(am|pm)?"
_BETWEEN: Final = re.compile(rf"\b(?:between|from)\s+{_CLOCK}\s*(?:and|to|until|till|-)\s*{_CLOCK}")
_SINCE: Final = re.compile(
    r"\b(?:since|after|from)\s+(?:about|around|roughly)?\s*(?:yesterday\s+(?:at|around|about)?\s*)?"
    r"(\d{1,2})[:.](\d\d)\s*(am|pm)?"
)
_AT: Final = re.compile(r"\b(?:around|about|at)\s+(?:about\s+)?(\d{1,2})[:.](\d\d)\s*(am|pm)?")
_AT_HOUR: Final = re.compile(r"\b(?:around|about|at)\s+(\d{1,2})()\s*(am|pm)\b")
_LAST: Final = re.compile(r"\b(?:last|past)\s+(?:(\d{1,3})\s*)?(minute|min|m|hour|h)s?\b")
_WORD: Final = re.compile(r"[\w./:@-]+")
_GREETING: Final = re.compile(
    r"\W*(hi|hello|hey|thanks|thank you|thx|ty|cheers|great|ok|okay|nice|cool|bye|good (morning|night))"
    r"[\s,!.]*(kortex|bot|there|all|a lot|so much|you)?\W*",
    re.IGNORECASE,
)
_TOPICS: Final[Sequence[tuple[Topic, str]]] = (
    ("logs", r"\b(show|give|see|tail|fetch)\b.*\blogs?\b|\bwhat do(es)? .*logs? say\b"),
    ("deploys", r"\bwho (deploy|releas|ship)|\bwhat (changed|was (deployed|released))|\bdeploy(s|ments)?\b.*\b(last|recent|today|yesterday|week)"),
)  # fmt: skip
_ERRORS: Final = re.compile(
    r"\b(error|fail|5\d\d|availab|reject|crash|exception|broken|down)", re.IGNORECASE
)
_SLOW: Final = re.compile(
    r"\b(slow|latency|tim(e|es|ed|ing)[ -]?outs?|lag|hang|sluggish|respon[sd])", re.IGNORECASE
)
_IS_IT: Final = re.compile(
    r"\b(?:is|was|could|can|might|may)\s+(?:it|this|that)\s+(?:be\s+)?"
    r"(?:because of\s+|due to\s+|caused by\s+)?(?:the\s+|a\s+|an\s+|our\s+)?"
    r"([\w.-]+(?:\s[\w.-]+)?)\s*\?*\s*$",
    re.IGNORECASE,
)
# Where a product would stand; it has to be called otherwise than things that are none.
_SPOKEN_OF: Final = re.compile(
    r"\b(?:(?:is|are|was|were)\s+(?:the\s+)?([a-z][\w-]+)\s+(?:so\s+|still\s+|really\s+)?"
    r"(?:slow|down|broken|failing|fine|ok|okay|healthy|up|degraded|unavailable)\b"
    r"|(?:changed in|logs of|logs for|wrong with)\s+(?:the\s+)?([a-z][\w-]+))"
)
_NOBODY: Final = frozenset(
    {"it", "this", "that", "there", "everything", "something", "anything", "all", "things", "we",
     "they", "you", "what", "which", "who", "not", "the", "last", "our", "us", "system", "site",
     "production", "prod"}
)  # fmt: skip
_FEWEST_LETTERS: Final = 4
_ALIKE: Final = 0.84


@dataclass(frozen=True, slots=True)
class Asked:
    """`subject` is empty when nobody is named. `start` and `end` None: the usual window.

    `thought` is what somebody thinks it is; `stranger` a name that is no product here.

    `is_exact`: both ends, or the beginning, were given. `assumed` are words about it for the answer.
    """

    subject: str
    topic: Topic
    symptom: str
    start: datetime | None
    end: datetime | None
    is_exact: bool
    assumed: tuple[str, ...]
    thought: str = ""
    stranger: str = ""


def understand(text: str, products: Sequence[str], now: datetime | None) -> Asked:
    """Read a question. Times are UTC, and in the past of `now`; without it none is read."""
    if _GREETING.fullmatch(text.strip()):
        return Asked("", "greeting", "", None, None, is_exact=False, assumed=())
    subject, about = _subject(text, products)
    lowered = text.lower()
    thought, stranger = _thought(text, subject), ""
    if thought and thought == subject:
        subject = ""
    elif not subject:
        stranger = _stranger(lowered)
    slow, failing = _SLOW.search(text), _ERRORS.search(text)
    topic: Topic = "cause"
    if not slow and not failing:
        topic = next((name for name, found in _TOPICS if re.search(found, lowered)), "cause")
    symptom = "latency" if slow and not failing else "errors" if failing and not slow else ""
    times = _times(lowered, now.astimezone(UTC)) if now else None
    if times is None:
        return Asked(subject, topic, symptom, None, None, False, about, thought, stranger)
    start, end, is_exact, assumed = times
    told = (*about, *assumed)
    return Asked(subject, topic, symptom, start, end, is_exact, told, thought, stranger)


def _thought(text: str, subject: str) -> str:
    found = _IS_IT.search(text.strip())
    if found is None or _ERRORS.search(found[1]) or _SLOW.search(found[1]):
        return ""
    return subject or found[1]


def _stranger(lowered: str) -> str:
    """A name that stands where a product would, of which there is none of that name."""
    found = _SPOKEN_OF.search(lowered)
    name = (found[1] or found[2]) if found else ""
    return "" if name in _NOBODY else name


def _subject(text: str, products: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The product named first: whole, by the beginning of its name, or with a letter wrong."""
    words = [word.strip(".:-/@?!,") for word in _WORD.findall(text)]
    lowered = [word.lower() for word in words]
    by_name = {product.lower(): product for product in products}
    for word in lowered:
        if word in by_name:
            return by_name[word], ()
    for word in lowered:
        if len(word) < _FEWEST_LETTERS:
            continue
        begun = [p for name, p in by_name.items() if re.match(rf"{re.escape(word)}[-_./:]", name)]
        if len(begun) == 1:
            return begun[0], (f'"{word}" is taken as {begun[0]}',)
    for word in lowered:
        near = difflib.get_close_matches(word, by_name, 1, _ALIKE)
        if len(word) >= _FEWEST_LETTERS and near:
            return by_name[near[0]], (f'"{word}" is taken as {by_name[near[0]]}',)
    return "", ()


def _times(text: str, now: datetime) -> tuple[datetime, datetime, bool, tuple[str, ...]] | None:
    day = now - timedelta(days=1) if "yesterday" in text else now
    said = ("times are taken as UTC",) if "utc" not in text else ()
    if found := _BETWEEN.search(text):
        start, end = _clock(found.groups()[:3], day), _clock(found.groups()[3:], day)
        if start and end and (found[2] or found[5] or found[3] or found[6]):
            end = end + timedelta(days=1) if end <= start else end
            return _past(start, end, now, said)
    if found := _SINCE.search(text):
        start = _clock(found.groups(), day)
        if start:
            return _past(start - _BEFORE_CLAIMED, now, now, said)
    if "last night" in text:
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight - timedelta(hours=2), min(now, midnight + timedelta(hours=6)), True, said
    if found := (_AT.search(text) or _AT_HOUR.search(text)):
        at = _clock(found.groups(), day)
        if at:
            return _past(at - _AROUND, at + _AROUND, now, said)
    if found := _LAST.search(text):
        number, unit = int(found[1] or 1), found[2]
        length = timedelta(hours=number) if unit.startswith("h") else timedelta(minutes=number)
        return now - min(length, _LONGEST), now, True, ()
    return None


def _clock(parts: Sequence[str | None], day: datetime) -> datetime | None:
    hour, minute = int(parts[0] or 0), int(parts[1] or 0)
    if parts[2]:
        hour = hour % 12 + (12 if parts[2] == "pm" else 0)
    if hour > 23 or minute > 59:
        return None
    return day.replace(hour=hour, minute=minute, second=0, microsecond=0)


def _past(
    start: datetime, end: datetime, now: datetime, said: tuple[str, ...]
) -> tuple[datetime, datetime, bool, tuple[str, ...]]:
    """A clock time that has not come yet is yesterday's."""
    if start >= now:
        days = timedelta(days=(start - now).days + 1)
        start, end = start - days, end - days
    end = min(end, now)
    if end - start > _LONGEST:
        start = end - _LONGEST
    return start, end, True, said
