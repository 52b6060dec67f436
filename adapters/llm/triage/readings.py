"""The answer to "how much memory does checkout use?": figures of a product, as they were measured."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from pydantic import JsonValue

from adapters.llm.triage.beyond import can_ask
from adapters.llm.triage.case import Case, SeenResult, number_of, plain, text_of
from adapters.llm.triage.figures import figure, in_words
from adapters.llm.triage.period import period
from adapters.llm.triage.spelling import spelled_out
from adapters.llm.triage.surroundings import Wish
from tools.signals import Role

FIND: Final = "core__find_metrics"
READ: Final = "core__get_metrics"
_USUAL: Final[Sequence[Role]] = ("latency", "errors", "traffic")
_MOST_ROLES: Final = 4
_WORDS: Final[Sequence[tuple[Role, str]]] = (
    ("errors", r"\berrors?\b|failure|success|5xx|availability|\bfail"),
    ("latency", r"latenc|\bp ?\d\d|percentile|response|duration|\bslow"),
    ("memory", r"memory|heap"),
    ("cpu", r"\bcpu|utili[sz]ation|\bload\b"),
    ("pool", r"connection|\bpool|saturation"),
    ("queue", r"queue|backlog|\blag\b"),
    ("disk", r"\bdisk|storage"),
    ("restarts", r"restart"),
    ("network", r"network|bandwidth"),
    ("traffic", r"traffic|\brequests?\b(?! time)|throughput|\brps\b|\bqps\b"),
)
_METRIC: Final = re.compile(r"(?<![\w.-])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![\w.-])")
_MOST_LINES: Final = 5
_QUANTILE: Final = re.compile(r"(?<![a-z0-9])p ?(\d\d\d?)(?![0-9])")
_COUNTS_FAILURES: Final = re.compile(r"err|fail|fault|5xx|reject|exception|drop|bad|abort|nok")
_NAMED: Final = {"errors": "error rate", "cpu": "CPU", "pool": "connection pool"}
_HALF_HOUR: Final = timedelta(minutes=30)
_COMPARES: Final = re.compile(
    r"\bcompar|\bvs\b|\bversus\b|\bthan\b|\bsame\b|\blike th(?:is|at)\b|\b(?:normal|usual|too|also)\b"
    r"|^\W*(?:was|were)\b"
    r"|^\W*(?:(?:and|but|what about|how about|how was it) )?(?:yesterday|last week|a (?:day|week) ago)\W*$"
)
_BACK: Final = (
    (re.compile(r"\blast week\b|\ba week ago\b|\bweek earlier\b"), timedelta(days=7)),
    (
        re.compile(r"\b(?:last|previous|an) hour\b|\bhour (?:ago|before|earlier)\b"),
        timedelta(hours=1),
    ),
    (
        re.compile(r"\byesterday\b|\ba day ago\b|\bday before\b|\b(?:usual|normal)\b"),
        timedelta(days=1),
    ),
)
_GRAPH: Final = re.compile(r"\b(?:graph|chart|dashboard|plot)")


def roles_asked(case: Case) -> Sequence[Role]:
    """The roles to read, in the order of the question; the golden signals by default."""
    text = spelled_out(case.question, case.products).replace("_", " ")
    found = [(at.start(), role) for role, words in _WORDS if (at := re.search(words, text))]
    return [role for _, role in sorted(found)][:_MOST_ROLES] or _USUAL


def wishes(case: Case, window: str) -> Iterator[Wish]:
    """First which metrics there are, then the best of each role, in each time that is compared."""
    windows = compared_times(case) or (window,)
    for one, what in _wanted(case):
        for product in _owners(one):
            seen = _found(case, what, product)
            if seen is None:
                yield FIND, {"product": product, "time_range": windows[0], **_sought(what)}
                break
            if name := _best(case, seen):
                about: dict[str, JsonValue] = {"product": product, "metric_name": name}
                yield from ((READ, {**about, "time_range": each}) for each in windows)
                break


def _wanted(case: Case) -> Sequence[tuple[Case, str]]:
    """Each product that the question names, with each metric or role that it asks for."""
    words = re.findall(r"[\w.-]+", case.question.lower())
    named = [one for one in case.products if one.lower() in words] or [case.subject]
    cases = [replace(case, asked=replace(case.asked, subject=one)) for one in named]
    metrics = _METRIC.findall(case.question.lower())
    return list(itertools.product(cases, metrics or roles_asked(case)))[:_MOST_LINES]


def _sought(what: str) -> dict[str, JsonValue]:
    return {"words": what} if "_" in what else {"role": what}


def _owners(case: Case) -> Sequence[str]:
    named = sorted((one for one in case.products if one in case.answered), key=len, reverse=True)
    is_named = case.subject.lower() in case.question.lower()
    others = [] if is_named else named
    return [one for one in dict.fromkeys([case.subject, *others]) if one and plain(one) == one]


def compared_times(case: Case) -> tuple[str, ...]:
    """The last half hour, and one around the same time of the day that it is to be compared with."""
    asked = case.question.lower()
    back = next((length for words, length in _BACK if words.search(asked)), None)
    is_at = case.asked.at is not None
    if not back or case.now is None or is_at or not _COMPARES.search(asked):
        return ()
    then = case.now - back
    spans = ((case.now - _HALF_HOUR, case.now), (then - _HALF_HOUR / 2, then + _HALF_HOUR / 2))
    return tuple(f"{_instant(start)}/{_instant(end)}" for start, end in spans)


def _instant(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def reading_lines(case: Case) -> Iterator[str]:
    """A line for each role: the value now and its range, or why there is none."""
    subject = plain(case.subject)
    if FIND not in case.tools:
        yield f"**I cannot read metrics here:** none are configured, see [observe.metrics]. {can_ask(case)}"
        return
    if not subject:
        yield "Which product? I read the metrics of one product at a time."
        return
    wanted = _wanted(case)
    names = list(dict.fromkeys(plain(one.subject) for one, _ in wanted))
    lines = [(plain(one.subject), _line(one, what)) for one, what in wanted]
    when = "" if compared_times(case) else period(case) or _until_now(case)
    if len(lines) == 1:
        yield f"**{names[0]}:** {lines[0][1]}."
    else:
        yield f"**{' and '.join(names)}{when}:**"
        yield "\n".join(f"- {f'{name}: ' if names[1:] else ''}{line}" for name, line in lines)
    if _GRAPH.search(case.question.lower()):
        yield f"`/kortex chart {roles_asked(case)[0]} {subject}` draws it."


def _until_now(case: Case) -> str:
    start = case.asked.start
    return f" since {start:%Y-%m-%d %H:%M} UTC" if start else ", last half hour"


def _found(case: Case, role: str, product: str) -> SeenResult | None:
    asked = {**_sought(role), "product": product}
    found = [s for s in case.seen if s.tool == FIND and asked.items() <= s.arguments.items()]
    return found[-1] if found else None


def _best(case: Case, seen: SeenResult) -> str:
    names = [text_of(row, "name") for row in seen.rows("found")]
    if words := str(seen.arguments.get("words") or ""):
        known = {name: name for name in [*names, *seen.texts("names")]}
        known |= {text_of(row, "metric"): text_of(row, "name") for row in seen.rows("found")}
        return known.get(words, "")
    wanted = _QUANTILE.search(case.question.lower())
    fitting = [name for name in names if wanted and wanted[1] in name]
    return next(iter([*fitting, *names]), "")


def _line(case: Case, role: str) -> str:
    words = f"`{role}`" if "_" in role else _NAMED.get(role, role)
    looked = [(one, found) for one in _owners(case) if (found := _found(case, role, one))]
    having = [each for each in looked if _best(case, each[1])]
    product, seen = next(iter([*having, *looked]), ("", None))
    if seen is None or not seen.ok:
        mark = f" [{seen.mark}]" if seen is not None and seen.mark else ""
        return f"{words}: the metrics could not be read{mark}"
    name = _best(case, seen)
    if not name:
        return f"{words}: no such metric was found [{seen.mark}]"
    reads = [s for s in case.seen if _is_of(s, product, name)]
    read = next(iter(reads), None)
    if read is None or not read.ok:
        mark = f" [{read.mark}]" if read is not None and read.mark else ""
        return f"{words}: its metric could not be read{mark}"
    told = _values(case, read)
    quantile = _QUANTILE.search(name)
    if role == "latency" and quantile:
        wanted = _QUANTILE.search(case.question.lower())
        is_other = wanted is not None and wanted[1] != quantile[1]
        words = f"{f'no p{wanted[1]} is measured; ' if wanted and is_other else ''}p{quantile[1]} latency"
    if role == "errors" and not _COUNTS_FAILURES.search(name.lower()):
        words = f"`{plain(name)}`"  # whether it counts what fails or what succeeds, its name does not say
    words = words if product == case.subject else f"{words} of {plain(product)}"
    if not told:
        return f"{words}: no samples in that time [{read.mark}]"
    return f"{words} {told} [{read.mark}]{_then(case, reads)}"


def _then(case: Case, reads: Sequence[SeenResult]) -> str:
    """What it was in the time that now is compared with; empty where nothing is compared."""
    windows = compared_times(case)
    if not windows:
        return ""
    day = f"{windows[1][:10]}"
    then = next((s for s in reads if s.arguments.get("time_range") == windows[1]), None)
    if then is None or not then.ok:
        return f"; its values of {day} could not be read"
    told = _range_of(then)
    return (
        f"; {'an hour before' if day == windows[0][:10] else f'at this time on {day}'} it was {told} [{then.mark}]"
        if told
        else f"; no samples on {day} [{then.mark}]"
    )


def _is_of(seen: SeenResult, product: str, name: str) -> bool:
    arguments = seen.arguments
    is_read = seen.tool == READ and arguments.get("product") == product
    return is_read and arguments.get("metric_name") == name


def _range_of(read: SeenResult) -> str:
    rows = [row for row in read.rows("series") or [read.result] if _newest(row) is not None]
    lows = [low for row in rows if (low := _stat(row, "min")) is not None]
    highs = [high for row in rows if (high := _stat(row, "max")) is not None]
    if not lows or not highs:
        return ""
    lowest, highest = _said(min(lows), max(highs), read.text("unit"))
    return f"between {lowest} and {highest}" if lowest != highest else lowest


def _values(case: Case, read: SeenResult) -> str:
    unit = read.text("unit")
    several = read.rows("series") or [read.result]
    rows = [row for row in several if _newest(row) is not None]
    if not rows:
        return ""
    newest = [value for row in rows if (value := _newest(row)) is not None]
    lows = [low for row in rows if (low := _stat(row, "min")) is not None] or newest
    highs = [high for row in rows if (high := _stat(row, "max")) is not None] or newest
    lowest, highest = _said(min(lows), max(highs), unit)
    between = f"between {lowest} and {highest}"
    between = between if lowest != highest else f"at {lowest} all the time"
    if case.is_past and not compared_times(case):
        return f"was {between}"
    first, last = (_said(each, max(highs), unit)[0] for each in (min(newest), max(newest)))
    if len(rows) > 1 and first != last:
        return f"is {first} to {last} over {len(rows)} series; {between}"
    return f"is {last}; {between}"


def _said(one: float, other: float, unit: str) -> tuple[str, str]:
    if unit:
        return in_words(one, other, unit)
    return figure(one), figure(other)


def _newest(row: Mapping[str, JsonValue]) -> float | None:
    samples = row.get("samples")
    last = samples[-1] if isinstance(samples, list) and samples else None
    return number_of(last, "value") if isinstance(last, dict) else None


def _stat(row: Mapping[str, JsonValue], name: str) -> float | None:
    stats = row.get("stats")
    return number_of(stats, name) if isinstance(stats, dict) else None
