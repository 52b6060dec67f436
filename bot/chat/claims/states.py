"""What a sentence says of states, of who took the time, and of things that were not there."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from bot.chat.claims.facts import Fields, rollbacks_in, rows_in
from bot.chat.claims.results import Result
from bot.chat.claims.rows import Row, disagreeing, named_in
from bot.chat.claims.sentences import (
    admits_failure,
    agrees,
    directions,
    is_open,
    is_suggestion,
    own_figures_disagree,
)

SAYS: Final = " says: "  # in the note of a claim that a result refutes
_MOST_SHOWN: Final = 3

_NONE = re.compile(
    r"\b(?:no|zero|without(?: any)?) (?:recent |other |new |further )?(deploy|release|rollout|error|warning|log line|event|incident)s?\b"
    r"(?!\s(?:(?:was|were|is|are) (?:\w+ )?)?(?:after|before|since|other|of|for|that|from|in (?!the|that)))",
    re.IGNORECASE,
)
_LISTS = {
    "deploy": "deploys", "release": "deploys", "rollout": "deploys", "error": "lines",
    "warning": "lines", "log line": "lines", "event": "events", "incident": "incidents",
}  # fmt: skip
_LEVELS = {"error": ("error", "fatal"), "warning": ("warn", "warning")}
_HAVE = re.compile(r"\blogs? (?:show|hold|contain|are full of|have|has)\b(?! no\b)", re.IGNORECASE)
_GOOD = re.compile(
    r"\b(?:pods?|replicas?|containers?)\b[^.;]{0,40}\b(?:run|runs|running|ready|healthy)\b"
    r"|\b(?:succeeded|completed|finished) ?(?:successfully)?\b|: completed\b",
    re.IGNORECASE,
)
_BAD = re.compile(
    r"\b(?:pods?|replicas?|containers?)\b[^.;]{0,40}\b(?:crash\w*|pending|not ready|failing|failed|restarting|down|evicted)\b"
    r"|\b(?:workflow|deploy|deployment|rollout|release)\b[^.;]{0,30}\b(?:failed|was aborted|was cancelled)\b",
    re.IGNORECASE,
)
_ROLLED = re.compile(r"\b(?:was|were|has been|have been|got) rolled back\b", re.IGNORECASE)
_ALL = re.compile(r"\ball\b", re.IGNORECASE)
_NEGATED = re.compile(r"\b(?:not|no|none|never|n't|neither|0)\b", re.IGNORECASE)
_STATED = ("deploys", "workflows", "workflow", "status")
_GOOD_STATES = frozenset(
    ["running", "ok", "completed", "succeeded", "success", "active", "ready", "healthy", "normal"]
)
_BAD_STATES = re.compile(
    r"crash|error|failed|oomkilled|pending|backoff|evicted|aborted|cancelled|unhealthy|stopped"
)
_MOST_TIME = re.compile(
    r"most of (?:the|its) time (?:is|was|goes|went)(?: spent)? (?:in|to|into|on) (?:the )?([a-z][\w-]*)",
    re.IGNORECASE,
)
_REPLACED = re.compile(
    r"(v?\d[\w.]*)[^.;]{0,40}?,? ?(?:replacing|replaced|replaces|superseded|superseding) (v?\d[\w.+-]*\d)",
    re.IGNORECASE,
)


def _not_none(words: str, result: Result) -> str:
    lines = result.fields.get("lines")
    if lines == [] and _HAVE.search(words):
        return "no lines"
    for match in _NONE.finditer(words):
        thing = match[1].lower()
        rows = result.fields.get(_LISTS[thing])
        if not isinstance(rows, list):
            continue
        levels = _LEVELS.get(thing)
        count = sum(
            1 for r in rows if levels is None or (isinstance(r, dict) and r.get("level") in levels)
        )
        if count:
            return f"{count} {thing}{'s' if count > 1 else ''}"
    return ""


def _state(words: str, result: Result) -> str:
    rows = result.fields.get("deploys")
    if isinstance(rows, list) and rows and _ROLLED.search(words) and not _NEGATED.search(words):
        told = rows_in(rows)
        undone = [row.get("rolled_back") for row in told]
        if all(each is False for each in undone) and not any(rollbacks_in(told)):
            return "not rolled back"
    states = _states(result)
    if not states or _NEGATED.search(words):
        return ""
    good = [s for s in states if s in _GOOD_STATES]
    bad = [s for s in states if _BAD_STATES.search(s)]
    if _BAD.search(words):
        return good[0] if good and not bad else ""
    if bad and _GOOD.search(words) and (not good or _ALL.search(words)):
        return re.sub(r"[^a-z0-9_ :/-]", "", bad[0])[:40]
    return ""


def _states(result: Result) -> list[str]:
    columns, rows = result.fields.get("columns"), result.fields.get("rows")
    if isinstance(columns, list) and isinstance(rows, list):
        at = next((i for i, c in enumerate(columns) if str(c).lower() == "status"), None)
        cells = [r for r in rows if at is not None and isinstance(r, list) and len(r) > at]
        return [str(r[at or 0]).lower() for r in cells]
    has_states = not result.fields.keys().isdisjoint(_STATED)
    return result.index.statuses if has_states else []


def _time_taker(words: str, result: Result) -> str:
    match = _MOST_TIME.search(words)
    root = result.fields.get("root")
    if match is None or not isinstance(root, dict):
        return ""
    own = self_times(root)
    taker = busiest(own)
    if taker and match[1].lower() != taker and match[1].lower() in own:
        return f"most of it in {re.sub(r'[^a-z0-9_.-]', '', taker)[:60]}"
    return ""


def busiest(own: Mapping[str, float]) -> str:
    """The service that spends most time itself; empty without any."""
    return max(own, key=lambda name: own[name], default="")


def self_times(root: Mapping[str, JsonValue]) -> dict[str, float]:
    """The time that each service of a trace spends itself, in microseconds."""
    own: dict[str, float] = {}
    for span in spans_of(root):
        value = span.get("self_us")
        if not isinstance(value, int | float):
            inside = sum(map(_duration, rows_in(span.get("children"))))
            value = max(0.0, _duration(span) - inside)
        name = str(span.get("service", "")).lower()
        own[name] = own.get(name, 0.0) + float(value)
    return own


def spans_of(root: Fields) -> Iterator[Fields]:
    waiting = [root]
    while waiting:
        span = waiting.pop()
        yield span
        waiting.extend(rows_in(span.get("children")))


def _duration(span: Fields) -> float:
    value = span.get("duration_us")
    return float(value) if isinstance(value, int | float) else 0.0


def _order(words: str, result: Result) -> str:
    rows = result.fields.get("deploys")
    match = _REPLACED.search(words)
    if match is None or not isinstance(rows, list):
        return ""
    new, old = match[1].lower().removeprefix("v"), match[2].lower().removeprefix("v")
    pairs = {
        tuple(
            str(r.get(key, "")).lower().removeprefix("v") for key in ("version", "previous_version")
        )
        for r in rows_in(rows)
    }
    return f"{old} replaced {new}" if (old, new) in pairs and (new, old) not in pairs else ""


def opposed(words: str, cited: Sequence[Result]) -> str:
    """What the cited results say where the sentence says the opposite; empty where it does not."""
    if not cited or words.rstrip().endswith("?") or is_suggestion(words):
        return ""
    for result in cited:
        for opposite in (_not_none, _state, _time_taker, _order):
            if told := opposite(words, result):
                return f"E{result.number}{SAYS}{told}"
    claimed = directions(words)
    if not claimed:
        return ""
    empty = [r for r in cited if r.is_empty_comparison]
    if len(empty) == len(cited) and not admits_failure(words) and not is_open(words):
        return f"E{empty[0].number}{SAYS}no data to compare"
    if own_figures_disagree(words, claimed):
        return f"{' '.join(f'E{r.number}' for r in cited[:_MOST_SHOWN])}{SAYS}the other way round"
    own = {row: r.number for r in cited for row in _rows_of_named(words, r)}
    if other := None if any(r.compared for r in cited) else disagreeing(words, claimed, list(own)):
        return f"E{own[other]}{SAYS}{other.says}"
    return _other_way(words, claimed, cited)


def _rows_of_named(words: str, result: Result) -> list[Row]:
    return [row for one in named_in(words, result.rows) for row in result.rows[one]]


def _other_way(words: str, claimed: list[tuple[str, bool]], cited: Sequence[Result]) -> str:
    compared = [(r, c) for r in cited for c in r.compared]
    named = [(r, c) for r, c in compared if c.product and c.product.lower() in words.lower()]
    compared = named if named and len(cited) == 1 else compared
    wrong = [
        (way, denied)
        for way, denied in claimed
        if not any(agrees(way, denied, c.direction) for _, c in compared)
    ]
    if not compared or not wrong:
        return ""
    if len(wrong) < len(claimed) and len(compared) < len(claimed):
        return ""
    result, one = compared[0]
    return f"E{result.number}{SAYS}{one.says}"
