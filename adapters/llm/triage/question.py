"""The meaning of a question: product, time and intent, with the assumptions made."""

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
from adapters.llm.triage.named_in_question import (
    complained_of,
    known_name,
    owner_named,
    product_named,
    service_named,
    shaped_name,
    spoken_of,
    unread_name,
)
from adapters.llm.triage.onset_asked import asks_since_when
from adapters.llm.triage.spelling import spelled_out
from adapters.llm.triage.when import SHORTEST, Window, speaks_of_time, window_in
from tools.core.sweep_arguments import LONGEST_WINDOW
from tools.timerange import MAX_RANGE

# Whether an action helped: about the product that it was carried out for.
# The time that now is compared with: "slower than yesterday", "different from this morning".
_THAN: Final = re.compile(
    r"\b(?:than|differ\w*\s+(?:from|to)|compared\s+(?:to|with|against)|versus|vs\.?|unlike)\s+"
    r"(?:(?:it|they)\s+(?:was|were|did|had been)\s+)?(?:(?:on|at|around|in)\s+)?(?:the\s+)?"
    r"(?:yesterday(?:\s+\w+)?|last\s+\w+|this\s+\w+|(?:day|week)\s+before"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|\d{1,2}:\d\d)\b"
)
_HELPED: Final = re.compile(
    r"\b(?:did|has|have)\s+(?:it|that|this|(?:the\s+)?(?:roll(?:ing)?[ -]?back|revert)\b[^.?!]*)\s*(?:help(?:ed)?|(?:do|done|change)\s+anything)\b",
    re.IGNORECASE,
)
_ERRORS: Final = re.compile(
    r"\b(error|fail|5\d\d|availab|reject|crash|exception|broken|down)", re.IGNORECASE
)
_SLOW: Final = re.compile(
    r"\b(slow|latency|tim(e|es|ed|ing)[ -]?outs?|lag|hang|sluggish|respon[sd])", re.IGNORECASE
)
_ROLL_BACK: Final = re.compile(
    r"\W*(?:(?:please|pls|plz|now|just|can|could|would|will|should|shall|you|we|kortex|ok|okay|yes|alright|so|then|let|us|lets|go|ahead|and|do)\W+(?:s\W+)?)*"
    r"(?:(?:prepare|start|trigger|make|create)\s+(?:the\s+|a\s+)?)?"
    r"(?:roll(?:ing)?(?:\s[\w.-]+)?[ -]?back|revert|undo)\b",
    re.IGNORECASE,
)
_COMPLAINS: Final = re.compile(
    r"^(?!\W*(?:how|what|show|is|are|give|get)\b).*\b(?:bad|high|up|too|elevated|awful|terrible|alerts?|firing"
    r"|spik\w*|ris\w*|jump\w*|increas\w*|drop\w*|exceed\w*)\b"
)
# What Kubernetes itself answers, whether or not anything else is measured.
_CLUSTER: Final = re.compile(
    r"\b(pods?|nodes?|deployments?|replicasets?|rollouts?|kubernetes|k8s|containers?|probes?|namespace)\b",
    re.IGNORECASE,
)
_IS_IT: Final = re.compile(
    r"(?:^|[,;:.!?]|\b(?:so|but|and|or|ok|hmm|well|then|maybe))\s*"
    r"(?:(?:(?:is|was)(?:n['\u2019]?t)?|could|can|might|may)\s+(?:it|this|that)|(?:any chance|maybe|perhaps|what if)\s+(?:that\s+)?"
    r"it(?:['\u2019]?s|\s+is))\s+(?:be\s+)?"
    r"(?:because of\s+|due to\s+|caused by\s+)?(?:the\s+|a\s+|an\s+|our\s+)?"
    r"([\w.-]+(?:\s[\w.-]+)?)\s*\?*\s*$",
    re.IGNORECASE,
)
# "Could the proxy be it?", "not the network, right?"
_BE_IT: Final = re.compile(
    r"\W*(?:(?:so|but|and|ok|hmm)\W+)*(?:(?:could|can|might|may)\s+(?:the\s+|our\s+|a\s+)?([\w.-]+)\s+be\s+(?:it|the\s+(?:cause|"
    r"culprit|problem|reason)|to\s+blame)|(?:is|was)\s+(?:it\s+)?(?:the\s+|our\s+)?([\w.-]+?)(?:['’]?s)?\s+(?:the\s+culprit|to\s+blame|fault)|(?:not|so\s+not|nothing\s+to\s+do\s+with)\s+(?:the\s+|our\s+)?([\w.-]+)[,\s]+(?:right|then|correct|yes))\W*",
    re.IGNORECASE,
)
_THE_PART: Final = re.compile(
    r"(?:(?:and|ok|so|but|what about|how about)[, ]+)*(?:the |our )(database|db|cache|queue|network|dns)s?\W*"
)
_WHY_NOT: Final = re.compile(
    r"(?:and |so |but )*why (?:is it )?not (?:the )?[\w.-]+ ?\?*", re.IGNORECASE
)
_OTHER_DAY: Final = re.compile(
    r"\b(?:yesterday|last (?:week|night)|the day before|a (?:day|week) ago)\b"
)
_YES_NO: Final = re.compile(
    r"\W*(?:(?:and|so|but|ok|hey|then)\W+)*(?:is|are|was|were|does|did|has|have)\b", re.IGNORECASE
)
_ROLE: Final = re.compile(rf"\b{ROLE_WORDS}\b")
_MOST_WORDS: Final = 5  # of a message that is short for a question
_PLACES: Final = frozenset(
    {"dns", "registry", "network", "disk", "disks", "cluster", "node", "nodes"}
)
_FROM_THIS: Final = re.compile(r"\b(?:because of|due to|caused by) (?:this|that|it)\b")
_STATE: Final = re.compile(r"crash\w*|fail\w*|broken|affected|previous|restart\w*")
_ASKS_NOTHING: Final = frozenset({"greeting", "thanks", "help"})
_CAUSE: Final = Intent("cause")
_BEYOND: Final = Intent("beyond")
# In a first message about trouble these are asked beside its cause.
_BESIDE_TROUBLE: Final = frozenset({"deploys", "pods", "history", "runbook", "figure"})
# "Is it the pods?" asks whether it is, not for a list of them.
_LISTED: Final = frozenset({"deploys", "pods", "logs", "figure"})
_OWNED: Final = frozenset({"figure", "deploys", "pods", "logs", "on call", "done", "runbook"})
_NO_THING_WORDS: Final = (
    "over ok okay fine you me safe possible true now still again better worse there going "
    "getting really done today lot lots much bad big high low serious"
)
_NO_THING: Final = frozenset(_NO_THING_WORDS.split())


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
    wants_undone = _ROLL_BACK.match(spelled_out(text, products)) is not None
    of_cluster = _CLUSTER.search(text) is not None and not slow and not failing
    is_cause = not found or found[0].topic == "cause"
    longest = LONGEST_WINDOW if is_cause else MAX_RANGE
    shortest = SHORTEST if is_cause else timedelta(0)
    timed = _THAN.sub("", lowered) if is_cause else lowered
    when = window_in(timed, now.astimezone(UTC), zone, longest, shortest) if now else None
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
        is_time_unread=when is None and now is not None and speaks_of_time(timed),
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
    subject, about = product_named(text, products)
    thought, stranger = _thought(text, subject), ""
    if thought and found and (found[0].topic in _LISTED or _BE_IT.fullmatch(text)):
        found = ()
    elif found or thought in _NO_THING:
        thought = ""
    if thought and thought == subject:
        subject = ""
    elif not subject:
        may_be_shaped = not found or found[0].topic in _LISTED
        is_cause = not found or found[0].topic == "cause"
        stranger = (
            spoken_of(lowered)
            or (may_be_shaped and shaped_name(lowered))
            or ("" if thought else service_named(lowered) or known_name(lowered, elsewhere))
            or (is_cause and not thought and complained_of(lowered))
            or (is_cause and not thought and is_understood(text) and unread_name(lowered))
            or (
                found
                and found[0].topic in _OWNED
                and owner_named(lowered, logs=found[0].topic == "logs")
            )
            or ""
        )
    if (
        not found
        and not thought
        and not stranger
        and (part := _THE_PART.fullmatch(text.lower().strip()))
    ):
        stranger = part[1]
    if not found and is_part_of(stranger, products):
        thought, stranger = stranger, ""  # "is the db slow?" asks about the databases
    if found and found[0].topic == "logs" and _STATE.fullmatch(stranger):
        stranger = ""  # "logs of the crashing pod"
    if found and found[0].topic == "pods" and (stranger in KNOWN_WORDS or _CLUSTER.match(stranger)):
        stranger = ""  # "are the pods fine?"
    return subject, about, thought, stranger, found


def asks_yes_or_no(text: str) -> bool:
    return _YES_NO.match(text) is not None


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
    is_trouble = slow or failing
    if found and found[0].topic == "figure":  # "error rate" is a figure, "errors since noon" may be
        rest = _ROLE.sub(" ", text.lower())
        is_trouble = _SLOW.search(rest) or _ERRORS.search(rest) or _COMPLAINS.search(rest)
    if later and (thought or _is_about(text, subject, found, is_trouble=bool(is_trouble))):
        return STATE
    if found and (later or not is_trouble or found[0].topic not in _BESIDE_TROUBLE):
        return found[0]
    if not later:
        is_nothing = products and not any(told) and not is_understood(text)
        return Intent("unclear") if is_nothing else _CAUSE
    if subject or stranger:
        is_complaint = (slow or failing) and not asks_yes_or_no(text)
        if subject and is_complaint and not _FROM_THIS.search(text.lower()):
            return _CAUSE
        return STATE if subject or is_about_product(text, products) else _BEYOND
    if when or asks_since_when(text.lower()):
        return _of_time(text, when)
    return _BEYOND if is_understood(text) else Intent("unclear")


def _of_time(text: str, when: object) -> Intent:
    """What a message asks that says a time and little else."""
    if when and _OTHER_DAY.search(text.lower()) and len(text.split()) < _MOST_WORDS:
        return Intent("figure")
    return STATE if isinstance(when, Window) and when.at is not None else _CAUSE


def _is_about(text: str, subject: object, found: Sequence[Intent], *, is_trouble: bool) -> bool:
    """Whether it asks how a product is: "did cart get slower after the release"."""
    if not found or not subject:
        return False
    if found[0].topic == "deploys":
        return is_trouble and asks_yes_or_no(text)
    about = rf"\b(?:about|with|on|in|from) (?:the )?{re.escape(str(subject).lower())}\b"
    is_told = "?" not in text and re.search(about, text.lower()) is not None
    return is_told and found[0].part == "impact"


def _thought(text: str, subject: str) -> str:
    if subject and _WHY_NOT.fullmatch(text.strip()):
        return subject
    if be_it := _BE_IT.fullmatch(text):
        return subject or be_it[1] or be_it[2] or be_it[3]
    found = _IS_IT.search(text.strip())
    if found is None or _ERRORS.search(found[1]) or _SLOW.search(found[1]):
        return ""
    is_state = found[1].lower().split()[0] in _NO_THING
    return "" if is_state else subject or found[1]
