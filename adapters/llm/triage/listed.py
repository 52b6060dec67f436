"""Logs, deploys, pods, past incidents and runbooks as they were asked for: listed, not weighed."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from adapters.llm.stated import is_log_line
from adapters.llm.triage.case import Case, SeenResult, instant, plain, text_of
from adapters.llm.triage.cluster_findings import in_full
from adapters.llm.triage.deploy_facts import DEPLOYS, DeployFact, deploys, unread_deploys
from adapters.llm.triage.evidence import CLUSTER, GET_LOGS
from adapters.llm.triage.follow_up import of_kind
from adapters.llm.triage.hypothesis import guesses_deploy
from adapters.llm.triage.order import refusal
from adapters.llm.triage.period import period
from adapters.llm.triage.spelling import spelled_out
from adapters.llm.triage.surroundings import HISTORY, PATTERNS, Wish, quoted, seen_before
from adapters.llm.triage.telling import clock, plain_words
from tools.core.get_recent_deploys import NO_SOURCE
from tools.output import lines_of

MOST_LINES: Final = 5  # more do not fit on a phone's screen; the rest is behind Evidence
_MOST_MARKS: Final = 12
_READ_LINES: Final = 20
_EVENTS: Final = re.compile(r"\bevents?\b|\bwarnings?\b")
_LINE_CHARS: Final = 180  # five such lines fit a phone
_LEVELS: Final = (
    ("fatal", r"\bfatal\b|\bpanics?\b"),
    ("error", r"\berrors?\b|\bexceptions?\b|\bstack ?traces?\b|\btrace ?backs?\b|\bfail"),
    ("warn", r"\bwarn"),
)
_QUOTED: Final = re.compile(r"[\"`\u201c]([^\"`\u201d]{2,80})[\"`\u201d]")
_SINGLE_QUOTED: Final = re.compile(r"(?<!\w)'([^'\n]{2,80})'(?!\w)")
_PATH: Final = re.compile(r"(?<!\S)/[\w./{}:-]{2,80}")
_ABOUT: Final = re.compile(
    r"\b(?:with|containing|contain|matching|mentioning|mention|about|saying|grep)\s+([\w./-]{3,60})"
)
_OF_CODE: Final = re.compile(r"\bchange\b|\breview|\bdiff\b|\bcontain|\bcode\b")
_RUNS: Final = re.compile(
    r"\bversions?\b.*\b(?:live|running|now|rn|prod\w*|deployed)\b|\bwhat (?:is|version) (?:live|running|deployed)\b"
)
_VERSION: Final = re.compile(r"\bv?(\d+(?:\.\d+)+)\b")


def log_wishes(case: Case, window: str) -> Iterator[Wish]:
    """The newest lines of the product, of the level and with the text that are named."""
    if not case.subject:
        return
    wish: dict[str, JsonValue] = {"product": case.subject, "time_range": window}
    level, text = _level(case), _text(case)
    yield (
        GET_LOGS,
        {
            **wish,
            **({"level": level} if level else {}),
            **({"query": text} if text else {}),
            "limit": _READ_LINES,
        },
    )


def _level(case: Case) -> str:
    asked = spelled_out(case.question, case.products)
    return next((level for level, words in _LEVELS if re.search(words, asked)), "")


def _text(case: Case) -> str:
    """What the lines are to hold: quoted, a path, a word after "with"; the words of a pasted line."""
    if is_log_line(case.question):
        said = _SAID_IN_LINE.search(case.question)
        return _constant(said[1] if said else case.question, case.products)
    if found := _QUOTED.search(case.question) or _SINGLE_QUOTED.search(case.question):
        return found[1]
    if found := _PATH.search(case.question):
        return found[0].rstrip("?.!,")
    found = _ABOUT.search(case.question.lower())
    word = found[1].strip(".-") if found else ""
    is_filter = word and word not in _NO_TEXT and word not in case.products
    return word if is_filter and not _is_level(word) else ""


_SAID_IN_LINE: Final = re.compile(r'"(?:msg|message|error)"\s*:\s*"([^"]+)"')
_WORDS_CHARS: Final = 80
_NO_TEXT: Final = frozenset({"the", "any", "this", "that", "all", "logs", "log", "lines", "it"})


def _constant(line: str, products: Sequence[str]) -> str:
    """The longest run of words: what a program writes alike in each of its lines."""
    runs: list[list[str]] = [[]]
    for token in line.split():
        word = token.strip(".,;:!'")
        is_text = word.isalpha() and not _is_level(word.lower()) and word not in products
        if is_text:
            runs[-1].append(word)
        if not is_text or token[-1] != word[-1]:
            runs.append([])
    return max((" ".join(run)[:_WORDS_CHARS] for run in runs), key=len)


def _is_level(word: str) -> bool:
    return any(re.fullmatch(rf"(?:{words})\w*", word) for _, words in _LEVELS)


def log_lines(case: Case) -> Iterator[str]:
    seen, subject = case.of(GET_LOGS), plain(case.subject)
    if seen is None:
        failed = [one for one in case.seen if not one.ok]
        whose = f"The logs of {subject}" if subject else "Logs without a product"
        why = next((f": {refusal(one)}" for one in failed if one.text("message")), "")
        yield f"{whose} could not be read{why}. {marks(failed)}".strip()
        return
    level = str(seen.arguments.get("level") or "")
    level = {"warn": "warn and error", "error": "error"}.get(level, level)
    kind = f"{level} lines".strip()
    text = str(seen.arguments.get("query") or "")
    having = f" with `{text.replace('`', ' ')}`" if text else ""
    rows = seen.rows("lines")
    when = period(case)
    if not rows:
        when = when or _between(case, seen)
        yield f"**{subject} wrote no {kind}{having}{when}.** [{seen.mark}]"
        return
    total = seen.number("total_matches")
    of = f" ({total:.0f} in total)" if total and total > MOST_LINES else ""
    yield f"**Newest {kind} of {subject}{having}{when}{of}, each after its time in UTC:** [{seen.mark}]"
    yield "\n".join(["```", *(_verbatim(row) for row in rows[:MOST_LINES]), "```"])
    if len(rows) > MOST_LINES:
        yield "Older lines are under Evidence."


def _between(case: Case, seen: SeenResult) -> str:
    begin = instant(seen.text("range").partition("/")[0])
    return f" since {clock(begin, case.now)}" if begin else ""


def _verbatim(row: Mapping[str, JsonValue]) -> str:
    at, level = instant(text_of(row, "ts")), text_of(row, "level")
    line = " ".join(lines_of(text_of(row, "message"))).replace("```", "'''")
    # At a whole word: half an identifier is in no result.
    cut = line if len(line) <= _LINE_CHARS else f"{line[:_LINE_CHARS].rsplit(' ', 1)[0]} …"
    return " ".join(filter(None, (f"{at:%H:%M:%S}" if at else "", level, cut)))


def deploy_lines(case: Case) -> Iterator[str]:
    found, seen = _asked_for(case), case.of(DEPLOYS)
    parts = of_kind(case.question, case.products)
    found = [one for one in found if not parts or one.product in parts]
    runs = _RUNS.search(case.question.lower()) is not None and not case.is_past
    if runs:  # the newest of each product
        found = list({one.product: one for one in reversed(found)}.values())[::-1]
    is_named = bool(_VERSION.search(case.question)) or "commit" in case.question.lower()
    if seen is None:
        failed = [one for one in case.seen if not one.ok]
        why = "could not be read" if DEPLOYS in case.tools else "have no source here"
        yield f"Deploys {why}. {marks(failed)}".strip()
    elif NO_SOURCE in seen.texts("notes"):
        yield f"No deploy source is connected: no deploy was received in 90 days [{seen.mark}]."
    elif not found:
        names = [case.asked.subject] if case.names_subject else parts
        of = f" of {' or '.join(map(plain, names))}" if names else ""
        known = " that is known" if unread_deploys(seen) else ""
        when = period(case) or (" in that time" if case.asked.start else " in the last seven days")
        yield f"**No deploy{of}{known}{when}.** [{seen.mark}] I cannot see manual changes."
    else:
        head = "Last deployed versions" if runs else "Deploys, newest first"
        yield f"**{head}:** [{seen.mark}]"
        yield "\n".join(f"- {line}" for line in _deployed(found[:MOST_LINES], seen, named=is_named))
        if len(found) > MOST_LINES:
            yield "Older deploys are under Evidence."
        if is_named and _OF_CODE.search(case.question.lower()):
            yield "I cannot show what changed in the code, nor who reviewed it."
    if seen is not None:
        yield from (f"{quoted(note).capitalize()}." for note in unread_deploys(seen))


def _asked_for(case: Case) -> Sequence[DeployFact]:
    found, named = deploys(case), set(_VERSION.findall(case.question))
    own = [one for one in found if one.version.removeprefix("v") in named]
    since = {one.product: one.at for one in own}  # what replaced it is part of the answer
    return (
        [one for one in found if one.product in since and one.at >= since[one.product]]
        if own
        else found
    )


def _deployed(found: Sequence[DeployFact], seen: SeenResult, *, named: bool) -> Iterator[str]:
    rows = {str(row.get("ts")): row for row in seen.rows("deploys")}
    commits = {at: plain(str(row.get("commit") or "")) for at, row in rows.items()}
    actors = {at: quoted(str(row.get("actor") or "")) for at, row in rows.items()}
    for one in found:
        at = one.at.strftime("%Y-%m-%dT%H:%M:%SZ")
        by, commit = actors.get(at, ""), commits.get(at, "") if named else ""
        told = f"{f' by {by}' if by else ''}{f', commit {commit}' if commit else ''}"
        told += f", replacing {one.previous}" if one.previous else ""
        yield f"{one.at:%Y-%m-%d %H:%M} UTC: {one.product} {one.version}{told}"


def last_deploy(case: Case) -> Iterator[str]:
    """Of the product that is named; else of any, with its name."""
    found, read = deploys(case), case.of(DEPLOYS)
    own = [one for one in found if one.product == case.subject or not case.names_subject]
    if read is None:
        return
    if NO_SOURCE in read.texts("notes"):
        if not guesses_deploy(case):  # else the answer begins with it
            yield f"deploys: no deploy source is connected [{read.mark}]"
        return
    if not found:
        known = " that are known" if unread_deploys(read) else ""
        yield f"no deploys{known} in that time [{read.mark}]"
        return
    fact = (own or found)[0]
    words = "the last deploy was"
    if not own:
        words = "no deploy of its own in that time; the last other deploy was"
    yield f"{words} {fact.product} {fact.version} at {clock(fact.at, case.now)} [{fact.seen.mark}]"


def pod_lines(case: Case) -> Iterator[str]:
    """The number of running pods and the unhealthy objects, of the named product or of all."""
    cluster = case.of(CLUSTER)
    if cluster is None:
        asked = any(one.tool == CLUSTER for one in case.seen)
        failed = marks([one for one in case.seen if not one.ok])
        yield (
            f"Kubernetes could not be read. {failed}".strip()
            if asked
            else ("**I cannot read Kubernetes here:** none is configured, see [kubernetes].")
        )
        return
    pods, subject = cluster.mapping("pods"), case.asked.subject
    ill = [row for row in cluster.rows("ill") if not subject or row.get("product") == subject]
    counted = {name: of for name, of in pods.items() if not subject or name == subject}
    whose = plain(subject) if subject else "the products here"
    if not counted and not ill:
        yield f"**No pods of {whose} were found.** [{cluster.mark}]"
        return
    if _EVENTS.search(case.question.lower()):
        yield from _event_lines(case, cluster, subject)
        return
    if subject and counted:
        yield f"**{whose}: {_well(str(counted[subject]))}.** [{cluster.mark}]"
    elif ill:
        yield f"**{len(ill)} {'objects have' if len(ill) > 1 else 'object has'} a failure:** [{cluster.mark}]"
    elif cluster.texts("unread"):
        yield f"**I see no failing pod of {whose}, but not everything could be read.** [{cluster.mark}]"
    else:
        yield f"**No pod of {whose} is failing.** [{cluster.mark}]"
    yield "\n".join(f"- {_failing(row)}" for row in ill[:MOST_LINES])
    if "node" in case.question.lower():
        nodes = plain_words(cluster.text("nodes"))
        yield f"Nodes: {nodes}." if nodes[:2] not in {"", "0 "} else "I can see no nodes here."
    if not subject and "how many" in case.question.lower():
        yield "\n".join(
            f"- {plain(one)}: {_well(str(of))}" for one, of in list(counted.items())[:MOST_LINES]
        )
    if len(ill) > MOST_LINES:
        yield f"{len(ill) - MOST_LINES} more are behind Evidence."


def _event_lines(case: Case, cluster: SeenResult, subject: str) -> Iterator[str]:
    rows = [row for row in cluster.rows("warnings") if not subject or row.get("product") == subject]
    of = f" of {plain(subject)}" if subject else ""
    if not rows:
        yield f"**No warning events{of}{period(case)}.** [{cluster.mark}]"
        return
    yield f"**Warning events{of}, current ones first, times in UTC:** [{cluster.mark}]"
    newest = sorted(rows, key=lambda row: text_of(row, "ts"), reverse=True)
    newest.sort(key=lambda row: row.get("over") is True)
    yield "\n".join(f"- {_event(row)}" for row in newest[:MOST_LINES])
    yield "Older events are behind Evidence." if len(rows) > MOST_LINES else ""


def _event(row: Mapping[str, JsonValue]) -> str:
    at = instant(text_of(row, "ts"))
    what = f"{plain(text_of(row, 'object'))} {plain(text_of(row, 'reason'))}"
    over = " (over)" if row.get("over") is True else ""
    return f"{f'{at:%H:%M:%S} ' if at else ''}{what}{over}: {in_full(text_of(row, 'message'))}"


def _well(counted: str) -> str:
    """`2 of 3 pods are healthy`, from `2 of 3 well`."""
    of = counted.removesuffix(" well")
    return f"{of} {'pod is' if of.endswith(' of 1') else 'pods are'} healthy"


def _failing(row: Mapping[str, JsonValue]) -> str:
    """The finding's own sentence in full: the reason is often at its end."""
    state = ", ".join(
        filter(None, (quoted(text_of(row, "state")), quoted(text_of(row, "mechanism"))))
    )
    what = f"{text_of(row, 'kind').lower()} {plain(text_of(row, 'name'))}"
    return in_full(text_of(row, "detail")) or f"{what}: {state}"


def history_lines(case: Case) -> Iterator[str]:
    seen = case.of(HISTORY)
    if seen is None:
        yield f"Past incidents could not be read. {marks([s for s in case.seen if not s.ok])}".strip()
        return
    lines = list(seen_before(seen))
    about = f" about {plain(case.subject)}" if case.subject else ""
    if not lines:
        yield f"**No past incident{about} is on record.** [{seen.mark}]"
        return
    yield f"**Past incidents{about}:**"
    yield "\n".join(f"- {line}" for line in lines[:MOST_LINES])


def runbook_lines(case: Case) -> Iterator[str]:
    """The team's written pages that fit, the best first."""
    seen = case.of(PATTERNS)
    if seen is None:
        yield f"Runbooks could not be read. {marks([s for s in case.seen if not s.ok])}".strip()
        return
    rows = seen.rows("patterns")
    if not rows:
        about = f" about {plain(case.subject)}" if case.subject else ""
        yield f"**No runbook{about} was found.** [{seen.mark}]"
        return
    section = quoted(text_of(rows[0], "section"))
    where = f", section {section}" if section else ""
    yield f"**Runbook: {quoted(text_of(rows[0], 'title'))}{where}** (`{plain(text_of(rows[0], 'file'))}`) [{seen.mark}]"
    yield f'"{quoted(text_of(rows[0], "text"))}"'
    yield "\n".join(f"- also: {quoted(text_of(row, 'title'))}" for row in rows[1:MOST_LINES])


def marks(found: Sequence[SeenResult]) -> str:
    """The numbers that an answer cites them by, a dozen at most."""
    return " ".join(f"[{s.mark}]" for s in found[:_MOST_MARKS] if s.mark)
