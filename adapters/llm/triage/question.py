"""The meaning of a question: product, time and intent, with the assumptions made."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from adapters.llm.triage.intents import (
    ROLE_WORDS,
    STATE,
    Intent,
    Part,
    Topic,
    intents,
    is_about_product,
)
from adapters.llm.triage.meaning import KNOWN_WORDS, is_understood
from adapters.llm.triage.onset_asked import asks_since_when
from adapters.llm.triage.when import SHORTEST, speaks_of_time, window_in
from tools.core.sweep_arguments import LONGEST_WINDOW
from tools.timerange import MAX_RANGE

_WORD: Final = re.compile(r"[\w./:@-]+")
# Whether an action helped: about the product that it was carried out for.
_HELPED: Final = re.compile(
    r"\b(?:did|has|have)\s+(?:it|that|this|(?:the\s+)?(?:roll(?:ing)?[ -]?back|revert)\b[^.?!]*)\s*help(?:ed)?\b",
    re.IGNORECASE,
)
_ERRORS: Final = re.compile(
    r"\b(error|fail|5\d\d|availab|reject|crash|exception|broken|down)", re.IGNORECASE
)
_SLOW: Final = re.compile(
    r"\b(slow|latency|tim(e|es|ed|ing)[ -]?outs?|lag|hang|sluggish|respon[sd])", re.IGNORECASE
)
_ROLL_BACK: Final = re.compile(
    r"\W*(?:(?:please|pls|plz|now|just|can|could|would|will|should|shall|you|we|kortex)\W+)*"
    r"(?:(?:prepare|start|trigger|make|create)\s+(?:the\s+|a\s+)?)?"
    r"(?:roll(?:ing)?(?:\s[\w.-]+)?[ -]?back|revert|undo)\b",
    re.IGNORECASE,
)
# What Kubernetes itself answers, whether or not anything else is measured.
_CLUSTER: Final = re.compile(
    r"\b(pods?|nodes?|deployments?|replicasets?|rollouts?|kubernetes|k8s|containers?|probes?|namespace)\b",
    re.IGNORECASE,
)
_IS_IT: Final = re.compile(
    r"(?:^|[,;:.!?]|\b(?:so|but|and|or|ok|hmm|well|then|maybe))\s*"
    r"(?:(?:is|was|could|can|might|may)\s+(?:it|this|that)|(?:any chance|maybe|perhaps|what if)\s+(?:that\s+)?"
    r"it(?:['\u2019]?s|\s+is))\s+(?:be\s+)?"
    r"(?:because of\s+|due to\s+|caused by\s+)?(?:the\s+|a\s+|an\s+|our\s+)?"
    r"([\w.-]+(?:\s[\w.-]+)?)\s*\?*\s*$",
    re.IGNORECASE,
)
_WHY_NOT: Final = re.compile(
    r"(?:and |so |but )*why (?:is it )?not (?:the )?[\w.-]+ ?\?*", re.IGNORECASE
)
_OTHER_DAY: Final = re.compile(
    r"\b(?:yesterday|last (?:week|night)|the day before|a (?:day|week) ago)\b"
)
_ROLE: Final = re.compile(rf"\b{ROLE_WORDS}\b")
_MOST_WORDS: Final = 5  # of a message that is short for a question
# Where a product's name would be; the words must differ from ordinary ones.
_SPOKEN_OF: Final = re.compile(
    r"\b(?:(?:is|are|was|were)\s+(?:the\s+)?([a-z][\w-]+)\s+(?:so\s+|still\s+|really\s+)?"
    r"(?:slow|down|broken|failing|fine|ok|okay|healthy|up|degraded|unavailable)\b"
    r"|(?:changed in|logs of|logs for|wrong with)\s+(?:the\s+)?([a-z][\w-]+)"
    r"|(?:what|how) about\s+(?:the\s+)?(?:new\s+|old\s+)?([a-z][\w-]+)(?:\s+service)?\W*$)"
)
_A_SERVICE: Final = re.compile(
    r"\b([a-z][\w-]+)\s+(?:micro-?)?service\b(?!\s+(?:mesh|account|level))"
)
_ANY_SERVICE: Final = frozenset(
    {"an", "another", "one", "other", "some", "no", "first", "single", "my", "your", "their", "its",
     "whose", "same", "main", "whole", "new", "old", "right", "web", "affected", "failing", "broken",
     "slow", "unhealthy", "downstream", "upstream", "external", "internal", "dependent", "backend",
     "frontend", "customer", "critical"}
)  # fmt: skip
_PLACES: Final = frozenset(
    {"dns", "registry", "network", "disk", "disks", "cluster", "node", "nodes"}
)
_STORES: Final = frozenset({"database", "db", "cache", "queue"})
_FROM_THIS: Final = re.compile(r"\b(?:because of|due to|caused by) (?:this|that|it)\b")
_STATE: Final = re.compile(r"crash\w*|fail\w*|broken|affected|previous|restart\w*")
_IS_PLURAL: Final = re.compile(
    r"\b(?:are|were|many|lost|losing|any) (?:the |our |some )?$"
)  # "are orders lost?"
_NOBODY: Final = frozenset(
    {"it", "this", "that", "there", "everything", "something", "anything", "all", "things", "we",
     "they", "you", "what", "which", "who", "not", "the", "last", "our", "us", "system", "site",
     "production", "prod", "staging", "dev", "test", "today", "yesterday", "tonight", "now", "me",
     "errors", "warnings", "exceptions", "timeouts", "failures", "crashes", "each", "every", "any"}
)  # fmt: skip
# Next to these words a known name is a product, not a word of English ("search for errors").
_BEFORE_WORDS: Final = "the in of for with about from on is are was deployed released"
_BEFORE_NAME: Final = frozenset(_BEFORE_WORDS.split())
_AFTER_NAME: Final = frozenset(
    {"is", "are", "was", "fails", "failing", "slow", "down", "broken", "errors", "latency", "logs",
     "pods", "deploys", "deployment"}
)  # fmt: skip
_ASKS_NOTHING: Final = frozenset({"greeting", "thanks", "help"})
_CAUSE: Final = Intent("cause")
_BEYOND: Final = Intent("beyond")
# In a first message about trouble these are asked beside its cause.
_BESIDE_TROUBLE: Final = frozenset({"deploys", "pods", "history", "runbook", "figure"})
# "Is it the pods?" asks whether it is, not for a list of them.
_LISTED: Final = frozenset({"deploys", "pods", "logs", "figure"})
_NO_THING_WORDS: Final = (
    "over ok okay fine you me safe possible true now still again better worse there going "
    "getting really done today"
)
_NO_THING: Final = frozenset(_NO_THING_WORDS.split())
_FEWEST_LETTERS: Final = 4
_ALIKE: Final = 0.84


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A parsed question. `subject` is empty if it names no product. `start` and `end` None: the
    usual window.

    `thought` is the asker's hypothesis; `stranger` a name that is not a product here. `apart` is
    what to say about it first; if that is the whole answer, the topic is "outside". `left_out`: the
    same name, if it is a product's that the answer does not cover.

    `fails`: the message reports a failure. `of_cluster`: only about what Kubernetes itself knows.
    `is_exact`: both ends, or the beginning, were given. `is_cut`: not all of the range can be read.
    `is_time_unread`: a time was given that could not be parsed. `wants_undone`: a request for a
    rollback. `asks_when`: only "since when". `at`: the point in time, with `start` and `end` around
    it. `asks_helped`: whether a rollback helped. `assumed` are assumptions for the answer. `part`:
    the part of an investigation to answer with. `also`: a second intent. `wish`: a request that
    cannot be computed, in words.
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
    left_out: str = ""
    fails: bool = False
    of_cluster: bool = False
    apart: str = ""
    is_time_unread: bool = False
    wants_undone: bool = False
    is_cut: bool = False
    asks_when: bool = False
    at: datetime | None = None
    asks_helped: bool = False
    part: Part = "all"
    also: tuple[Intent, ...] = ()
    wish: str = ""


def understand(
    text: str,
    products: Sequence[str],
    now: datetime | None,
    zone: str = "",
    elsewhere: Sequence[str] = (),
    *,
    later: bool = False,
) -> ParsedQuestion:
    """Read a question. Times are of that zone, and in the past of `now`; without it none is read.

    A product of other channels is known by its whole name only. `later`: the thread asked before.
    """
    found = intents(text, (*products, *elsewhere), later=later)
    if found and found[0].topic in _ASKS_NOTHING:
        return ParsedQuestion("", found[0].topic, "", None, None, is_exact=False, assumed=())
    lowered = text.lower()
    subject, about, thought, stranger, found = _named_in(text, found, products, elsewhere)
    slow, failing = _SLOW.search(text), _ERRORS.search(text)
    wants_undone = _ROLL_BACK.match(text) is not None
    of_cluster = _CLUSTER.search(text) is not None and not slow and not failing
    is_cause = not found or found[0].topic == "cause"
    longest = LONGEST_WINDOW if is_cause else MAX_RANGE
    shortest = SHORTEST if is_cause else timedelta(0)
    when = window_in(lowered, now.astimezone(UTC), zone, longest, shortest) if now else None
    told = (subject, stranger, thought, slow, failing, when, of_cluster)
    intent = _intended(text, found, told, products, later=later, wants_undone=wants_undone)
    return ParsedQuestion(
        subject=subject,
        topic=intent.topic,
        symptom="latency" if slow and not failing else "errors" if failing and not slow else "",
        start=when.start if when else None,
        end=when.end if when else None,
        is_exact=when is not None and when.is_exact,
        assumed=(*about, *(when.assumed if when else ())),
        thought=thought,
        stranger=stranger,
        fails=failing is not None,
        of_cluster=of_cluster,
        is_time_unread=when is None and now is not None and speaks_of_time(lowered),
        asks_when=intent.topic == "cause" and (intent.part == "onset" or asks_since_when(lowered)),
        is_cut=when is not None and when.is_cut,
        wants_undone=wants_undone,
        at=when.at if when else None,
        asks_helped=intent.topic == "cause" and _HELPED.search(text) is not None,
        part=intent.part,
        also=tuple(found[1:]),
        wish=intent.subject,
    )


def _named_in(
    text: str, found: Sequence[Intent], products: Sequence[str], elsewhere: Sequence[str]
) -> tuple[str, tuple[str, ...], str, str, Sequence[Intent]]:
    """The product, the assumption about it, the hypothesis, an unknown name, and the remaining
    intents, since "is it the pods?" asks for no list.
    """
    lowered = text.lower()
    subject, about = _subject(text, products)
    thought, stranger = _thought(text, subject), ""
    if thought and found and found[0].topic in _LISTED:
        found = ()
    elif found or thought in _NO_THING:
        thought = ""
    if thought and thought == subject:
        subject = ""
    elif not subject:
        stranger = _stranger(lowered) or (
            "" if thought else _service(lowered) or _named(lowered, elsewhere)
        )
    if not found and is_part_of(stranger, products):
        thought, stranger = stranger, ""  # "is the db slow?" asks about the databases
    if found and found[0].topic == "logs" and _STATE.fullmatch(stranger):
        stranger = ""  # "logs of the crashing pod"
    if found and found[0].topic == "pods" and stranger in KNOWN_WORDS:
        stranger = ""  # "are the pods fine?"
    return subject, about, thought, stranger, found


def is_part_of(name: str, products: Sequence[str]) -> bool:
    """Whether it is a common word for a part of a system, and there is one such part here."""
    if name in _PLACES:
        return True
    kind = {"database": "db"}.get(name.removesuffix("s"), name.removesuffix("s"))
    return bool(kind) and any(kind in re.split(r"[-_.]", one.lower()) for one in products)


def _intended(
    text: str,
    found: Sequence[Intent],
    told: Sequence[object],
    products: Sequence[str],
    *,
    later: bool,
    wants_undone: bool,
) -> Intent:
    subject, stranger, thought, slow, failing, when, _ = told
    if wants_undone:
        return _CAUSE
    if found and (later or not (slow or failing) or found[0].topic not in _BESIDE_TROUBLE):
        return found[0]
    if not later:
        is_nothing = products and not any(told) and not is_understood(text)
        return Intent("unclear") if is_nothing else _CAUSE
    if thought:
        return STATE
    if subject or stranger:
        if subject and (slow or failing) and not _FROM_THIS.search(text.lower()):
            return _CAUSE
        if subject and _ROLE.search(text.lower()) and len(text.split()) < _MOST_WORDS:
            return Intent("figure")
        return STATE if is_about_product(text, products) else _BEYOND
    if when and _OTHER_DAY.search(text.lower()) and len(text.split()) < _MOST_WORDS:
        return Intent("figure")
    if when or asks_since_when(text.lower()):
        return _CAUSE
    return _BEYOND if is_understood(text) else Intent("unclear")


def _thought(text: str, subject: str) -> str:
    if subject and _WHY_NOT.fullmatch(text.strip()):
        return subject
    found = _IS_IT.search(text.strip())
    if found is None or _ERRORS.search(found[1]) or _SLOW.search(found[1]):
        return ""
    is_state = found[1].lower().split()[0] in _NO_THING
    return "" if is_state else subject or found[1]


def _stranger(lowered: str) -> str:
    found = _SPOKEN_OF.search(lowered)
    if found is None:
        return ""
    mentioned = found[3] or ""  # a word of the language is no name there: "what about tomorrow?"
    is_word = mentioned in KNOWN_WORDS and mentioned.removesuffix("s") not in _STORES
    name = found[1] or found[2] or ("" if is_word else mentioned)
    return "" if name in _NOBODY else name


def _service(lowered: str) -> str:
    names = (one[1] for one in _A_SERVICE.finditer(lowered))
    return next((n for n in names if n not in KNOWN_WORDS | _NOBODY | _ANY_SERVICE), "")


def _named(lowered: str, names: Sequence[str]) -> str:
    known = {name.lower() for name in names}
    words = [word.strip(".:-/@?!,") for word in _WORD.findall(lowered)]
    beside = zip(["", *words], words, [*words[1:], ""], strict=False)
    return next(
        (
            word
            for before, word, after in beside
            if word in known and (before in _BEFORE_NAME or after in _AFTER_NAME or len(words) == 1)
        ),
        "",
    )


def _subject(text: str, products: Sequence[str]) -> tuple[str, tuple[str, ...]]:
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
        if len(begun) == 1 and not _IS_PLURAL.search(text.lower().partition(word)[0]):
            return begun[0], (f'"{word}" is taken as {begun[0]}',)
    for word in lowered:
        if len(word) < _FEWEST_LETTERS or word in KNOWN_WORDS:
            continue  # "which service" is no misspelt adservice
        near = difflib.get_close_matches(word, by_name, 1, _ALIKE)
        if near:
            return by_name[near[0]], (f'"{word}" is taken as {by_name[near[0]]}',)
    return "", ()
