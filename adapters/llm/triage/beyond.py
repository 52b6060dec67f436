"""Answers without a check: what can be asked, what needs a model, on call, the recap."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from adapters.llm.triage.case import Case, plain
from adapters.llm.triage.done import decision_sentence, waiting
from adapters.llm.triage.meaning import is_foreign
from adapters.llm.triage.spelling import spelled_out
from adapters.llm.triage.surroundings import quoted

_ABLE: Final = (
    "I look at metrics, logs, traces, Kubernetes and deploys, name the likely cause with its evidence, "
    "and propose declared actions for a person to confirm. I change nothing myself."
)
_NEVER: Final = frozenset({"page or message people", "silence alerts", "open links"})
_MOST_NAMED: Final = 8
_SHOULD: Final = re.compile(
    r"\b(?:should|need|have to|must|shall) (?:i|we)\b|\b(?:i|we) (?:should|need|have)\b"
)
_REPORT: Final = "write a report"


def can_ask(case: Case) -> str:
    """Three things to ask, with a name of this channel."""
    subject = plain(case.subject) or "checkout"
    first = "is it over?" if case.is_later else f"why is {subject} slow?"
    return (
        f'Ask me for example "{first}", "what changed?" or "show me the error logs of {subject}".'
    )


def help_lines(case: Case) -> Iterator[str]:
    yield f"**{_ABLE}**"
    examples = (
        f"why is {plain(case.subject) or 'checkout'} slow?",
        "is it over?",
        "what changed?",
        f"show me the error logs of {plain(case.subject) or 'checkout'}",
        "how much memory does it use?",
    )
    yield "You can ask:\n" + "\n".join(f"- {one}" for one in examples)


def beyond_lines(case: Case) -> Iterator[str]:
    """One sentence that it cannot be answered here, and what can."""
    match case.asked.wish:
        case "":
            is_other = is_foreign(spelled_out(case.question, case.products), case.products)
            only = " I read only English." if is_other else ""
            yield f"**I cannot answer this without a model, so I checked nothing.**{only} {can_ask(case)}"
        case wish if wish == _REPORT:
            yield (
                "**I cannot write a report here without a model.** `kortex incident report` writes "
                "it from the records: summary, impact, cause, timeline, actions."
            )
        case wish if wish in _NEVER:
            yield f"**I cannot {wish}.** {can_ask(case)}"
        case wish:
            yield f"**I cannot {wish} without a model.** {can_ask(case)}"


def on_call_lines(case: Case) -> Iterator[str]:
    yield f"**{case.on_call or 'On call: I have no rota for this channel.'}**"
    if _SHOULD.search(case.question.lower()):
        yield "Whom to call is your decision. I cannot page or message people."


def recap_lines(case: Case) -> Iterator[str]:
    """Cause, action and state, as they were answered in this thread."""
    cause = case.answered or "no cause has been named in this thread"
    yield f"**So far:** {cause}"
    yield "\n".join(f"- {line}" for line in _actions(case))
    yield 'I did not check again. Ask "is it over?" for the current state.'


def _actions(case: Case) -> Sequence[str]:
    decided = [f"{decision_sentence(one, case.now)}." for one in case.decided[-2:]]
    return [*decided, *waiting(case.open_proposals[:2])] or ["No action was proposed."]


def not_understood(case: Case) -> str:
    known = ", ".join(plain(one) for one in case.products[:_MOST_NAMED])
    said = f'"{said}"' if (said := quoted(case.question)) else "a message without words"
    return (
        f"I did not understand {said}. It names no product, symptom or time that "
        f"I know, so I checked nothing. Products here: {known}. Ask for example "
        f'"why is {plain(case.products[0])} slow?" or "what changed in the last hour?".'
    )
