"""The part of an investigation that answers a later question: over, how X is, impact, what to do."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from adapters.llm.triage.about import own_state
from adapters.llm.triage.case import Case, Signals, plain
from adapters.llm.triage.details import MOST_LINES, counted_out, quiet, ruled_out, shown_points
from adapters.llm.triage.done import decision_sentence, waiting
from adapters.llm.triage.evidence import Moved
from adapters.llm.triage.figures import in_words
from adapters.llm.triage.hypothesis import answer_to
from adapters.llm.triage.is_it_over import plain_answer
from adapters.llm.triage.judgement import Judgement
from adapters.llm.triage.linked import own_trouble
from adapters.llm.triage.next_step import next_step
from adapters.llm.triage.period import period
from adapters.llm.triage.point_in_time import at_point
from adapters.llm.triage.telling import cause_mark, cause_text, errors_line, named, now_text, told

_MOST_NAMED: Final = 6
_CUSTOMERS: Final = "The metrics do not count the affected customers."
_ASKS_WHO: Final = re.compile(r"\bwho (?:can|may|must|should|has to)\b")
_ASKS_SAFE: Final = re.compile(r"\b(?:safe|risky|dangerous)\b")
_ASKS_TREND: Final = re.compile(r"\b(?:better|worse|worsening|improv\w*|recovering|trend\w*)\b")
_ASKS_CHECKED: Final = re.compile(
    r"\bwhat\b.*\byou\b.*\b(?:look|check|see|read|miss)|\b(?:missing|not checked)\b"
)
_ASKS_MISSING: Final = re.compile(r"\bnot\b|n[o']?t\b|\bmiss")
_HARDLY: Final = 0.1  # of the baseline: too little to notice
_SIGNALS: Final = frozenset({"latency", "errors"})


def brief(case: Case, judgement: Judgement, signals: Signals) -> Iterator[str]:
    """Paragraphs: a headline, at most five lines, and pending proposals."""
    match case.asked.part:
        case "over":
            yield from _over(case, judgement)
        case "state":
            yield from _state(case, judgement)
        case "impact":
            yield from _impact(case, judgement)
        case "coverage":
            yield from _coverage(case, judgement)
        case _:
            yield from _next(case, judgement, signals)


def _over(case: Case, judgement: Judgement) -> Iterator[str]:
    """Over, not over, or unknown: a yes would be wrong for "is it still slow?"."""
    yes = plain_answer(case, judgement)
    going_on = _going_on(case, judgement)
    whole = plain(case.subject) if case.names_subject else "any product in this channel"
    if yes:
        yield yes
    elif going_on:
        first = going_on[0]
        yield f"**Not over: {now_text(first, case.now)}.** [{first.mark}]{_trend(case, first)}"
    elif judgement.verdict == "healthy":
        since = f" since {judgement.undone.words}" if judgement.undone else ""
        mark = f" [{judgement.undone.back.seen.mark}]" if judgement.undone else ""
        over = "It is over, as far as I can see. " if case.is_later else ""
        words = f"{over}Nothing is wrong with {whole}{'' if over else ', as far as I can see'}"
        yield f"**{words}{since}{period(case)}.**{mark}"
    elif judgement.suspects and judgement.suspects[0].over_since is None:
        yield f"**Not over. {cause_text(judgement.suspects[0], case.now)}**"
    else:
        yield f"**I cannot say that it is over.** {_unsure(judgement)}"
    lines = [f"{now_text(one, case.now)} [{one.mark}]" for one in going_on[1:MOST_LINES]]
    yield "\n".join(f"- {line}" for line in lines)
    yield _pending(case)


def _going_on(case: Case, judgement: Judgement) -> Sequence[Moved]:
    about = {case.subject} if case.names_subject else set(case.products)
    if judgement.suspects:
        about.add(judgement.suspects[0].product)
    found = [
        one
        for one in judgement.facts.moved
        if one.product in about and one.is_unusual and one.over_since is None and not one.is_back
    ]
    roles = {"errors": 0, "latency": 1}
    return sorted(
        found, key=lambda one: (one.product != case.subject, roles.get(one.role, 2), -one.score)
    )


def _trend(case: Case, fact: Moved) -> str:
    """Whether it is past its worst, where the question is whether it gets better or worse."""
    if not _ASKS_TREND.search(case.question.lower()):
        return ""
    worst = in_words(fact.worst, fact.usual, fact.unit)[0]
    is_worst = abs(fact.worst - fact.last) <= _HARDLY * abs(fact.worst - fact.usual)
    return " That is its worst so far." if is_worst else f" At its worst it was {worst}."


def _unsure(judgement: Judgement) -> str:
    missing = f" I could not check: {judgement.missing[0]}." if judgement.missing else ""
    return f"I see nothing abnormal now.{missing}"


def _pending(case: Case) -> str:
    about = case.subject if case.names_subject else ""
    open_ones = [one for one in case.open_proposals if about in ("", one[2])]
    if open_ones:
        return " ".join(waiting(open_ones[:2]))
    decided = [one for one in case.decided if about in ("", one.product)]
    return f"{decision_sentence(decided[-1], case.now)}." if decided else ""


def _state(case: Case, judgement: Judgement) -> Iterator[str]:
    is_cause = judgement.verdict == "cause"
    thought = answer_to(case, judgement)
    if thought and case.answered and not is_cause:
        # What it was is known from this thread; that it shows no more does not change that.
        yield f"**As answered in this thread: {case.answered}**"
        yield "I see nothing abnormal now." if judgement.verdict == "healthy" else ""
    elif thought:
        yield thought
        out = [line for line in ruled_out(case, judgement) if case.asked.thought in line]
        yield f"Not the cause: {out[0]}" if out and is_cause else ""
    elif then := at_point(case, judgement):
        yield then
    elif case.names_subject:
        yield from _own(case, judgement)
    top = next(iter(judgement.suspects), None)
    if top is not None and judgement.verdict == "cause":
        if thought or top.product != case.subject:
            yield f"{cause_text(top, case.now)} [{cause_mark(top)}]"
    elif judgement.verdict != "cause" and judgement.missing:
        yield f"I could not check: {judgement.missing[0]}."


def _own(case: Case, judgement: Judgement) -> Iterator[str]:
    name, troubles = plain(case.subject), own_trouble(case, judgement.facts)
    if not troubles:
        changed = [
            one
            for one in judgement.facts.logs
            if one.product == case.subject and one.change != "gone"
        ]
        yield f"**{name}{period(case)}: {judgement.own_blind.removeprefix(f'{name}: ') or own_state(case)}.**"
        yield "\n".join(f"- {errors_line(one, case.now)}" for one in changed[:MOST_LINES])
        return
    top = next(iter(judgement.suspects), None)
    if top is not None and top.product == case.subject and judgement.verdict == "cause":
        yield f"**{cause_text(top, case.now)}**"
    else:
        yield f"**{name} is not as usual{period(case)}:**"
    yield "\n".join(f"- {line}" for line in troubles[:MOST_LINES])


def _impact(case: Case, judgement: Judgement) -> Iterator[str]:
    moved = [one for one in judgement.facts.moved if one.role in _SIGNALS and one.is_unusual]
    moved = [one for one in moved if abs(one.worst - one.usual) > _HARDLY * abs(one.usual)]
    now = [one for one in moved if one.over_since is None]
    by_product = {one.product: one for one in sorted(now or moved, key=lambda each: each.score)}
    if not by_product and judgement.verdict == "cause":
        yield "**I cannot tell which products are affected: no latency or error rate shows it.**"
        yield cause_text(judgement.suspects[0], case.now)
        return
    if not by_product:
        yield f"**I see no product with unusual latency or errors{period(case)}.**"
        if judgement.missing:
            yield f"I could not check: {judgement.missing[0]}."
        return
    names = [plain(one) for one in by_product][::-1]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    were = "is" if now else "was"
    yield f"**Affected{'' if now else ', now over'}: {', '.join(names[:_MOST_NAMED])}{more}.**"
    order = {name: number for number, name in enumerate(by_product)}
    lines = sorted(now or moved, key=lambda one: (one.role != "errors", -order[one.product]))
    said = (f"{now_text(one, case.now, verb=were)} [{one.mark}]" for one in lines[:MOST_LINES])
    yield "\n".join(f"- {line}" for line in said)
    yield _CUSTOMERS


def _coverage(case: Case, judgement: Judgement) -> Iterator[str]:
    top = next(iter(judgement.suspects), None)
    if _ASKS_CHECKED.search(case.question.lower()):
        missing = [*judgement.missing[:MOST_LINES], "manual changes, which Kortex cannot see"]
        said = [
            f"I checked {', '.join(filter(None, counted_out(judgement))) or 'nothing'}.",
            f"I could not check: {'; '.join(missing)}.",
        ]
        first, then = said[::-1] if _ASKS_MISSING.search(case.question.lower()) else said
        yield f"**{first}**"
        yield then
        return
    if top is not None and judgement.verdict == "cause":
        yield f"**Likely, but not proven. {cause_text(top, case.now)}**"
        points = shown_points(top, case.asked.symptom)[:3]
        lines = [named(top.product, told(point, case.now)) for point in points]
        lines += [f"not the cause: {line}" for line in ruled_out(case, judgement)][:1]
    else:
        healthy = judgement.verdict == "healthy"
        yield f"**{'I see nothing wrong, but that is no proof' if healthy else 'No cause is established'}.**"
        lines = []
    lines += list(quiet(case, judgement))[:1]
    yield "\n".join(f"- {line}" for line in lines[:MOST_LINES])
    if judgement.missing:
        yield f"I could not check: {'; '.join(judgement.missing[:2])}."


def _next(case: Case, judgement: Judgement, signals: Signals) -> Iterator[str]:
    if judgement.verdict != "cause":
        if judgement.verdict == "healthy":
            yield "**I see nothing to do.**"
        else:
            yield "**No cause is established, so I propose nothing.**"
        first = [plain(one.product) for one in judgement.suspects]
        yield f"I would look first at {', then '.join(first)}." if first else ""
    else:
        if _ASKS_WHO.search(case.question.lower()):
            yield "**Only the roles on the card can confirm it.**"
        elif _ASKS_SAFE.search(case.question.lower()):
            yield "**I cannot tell whether it is safe.** A card shows what it touches and whether it can be undone."
        yield f"**{next_step(case, judgement, signals)}**"
        yield cause_text(judgement.suspects[0], case.now)
    if case.open_proposals:
        yield (
            "The card shows what runs, where, who can confirm it and whether it can be undone. "
            "Confirm runs exactly that action once. Reject runs nothing."
        )
