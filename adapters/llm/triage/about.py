"""The product that an answer is about, if it is not the one asked about."""

from typing import Final

from adapters.llm.triage.case import Case, plain, text_of
from adapters.llm.triage.deploy_facts import DeployFact
from adapters.llm.triage.evidence import LOGS, METRICS, swept
from adapters.llm.triage.judgement import Judgement
from adapters.llm.triage.linked import own_trouble
from adapters.llm.triage.period import period
from adapters.llm.triage.plan import mark_of
from adapters.llm.triage.question import asks_yes_or_no
from adapters.llm.triage.telling import named

_MOST_NAMED: Final = 5


def asked_first(case: Case, judgement: Judgement) -> str:
    """The first sentence about the product asked about: normal, or unknown.

    Empty if another product is more suspicious and this one has trouble too, and if no other is.
    """
    other, when = _other(case, judgement), period(case)
    if judgement.own_blind:
        metrics = case.of(METRICS)
        mark = f" [{metrics.mark}]" if metrics else ""
        itself = f"{judgement.own_blind.replace(': ', f'{when}: ', 1)}{mark}"
    elif other and not own_trouble(case, judgement.facts):
        itself = f"{plain(case.subject)}{when}: {own_state(case)}"
    else:
        return ""
    return f"You asked about {itself}.{f' The clearest anomaly is in {other}.' if other else ''}"


def asked_as_well(case: Case, judgement: Judgement) -> str:
    """The changes of the product asked about, if another product is more suspicious; else empty."""
    other, moved = _other(case, judgement), own_trouble(case, judgement.facts)
    if not other or not moved or judgement.own_blind:
        return ""
    name = plain(case.subject)
    begin = (
        f"{name} is not as usual" if asks_yes_or_no(case.question) else f"You asked about {name}"
    )
    return f"{begin}: {moved[0]}; the clearest anomaly is in {other}."


def own_state(case: Case) -> str:
    """Which of its own figures are as usual, or that none are known."""
    metrics = case.of(METRICS)
    if metrics is None:
        return "none of its metrics were read"
    roles = text_of(metrics.mapping("within"), case.subject).split()
    if not roles:
        return f"none of its metrics could be compared [{metrics.mark}]"
    are, were = ("is", "was") if len(roles) == 1 else ("are", "were")
    are = were if case.is_past else are
    return f"its {', '.join(roles)} {are} as usual [{metrics.mark}]"


def of_whom(case: Case, product: str, text: str) -> str:
    """A line of evidence, with its product where it is another than the one asked about."""
    is_plain = product == case.subject and (case.names_subject or len(case.products) == 1)
    return text if is_plain else named(product, text)


def everybody(case: Case, quantifier: str = "all products") -> str:
    """The products checked when the question names none; by name if they are few."""
    names = [plain(one) for one in case.products]
    if len(names) > _MOST_NAMED:
        return f"{quantifier} in this channel"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def assumed_of_all(case: Case, judgement: Judgement) -> str:
    """How a question without a product was understood; empty if the answer says it anyway."""
    if case.names_subject or len(case.products) < 2 or case.asked.apart or case.asked.thought:
        return ""
    if case.asked.topic == "logs":
        return f"you mean {plain(case.subject)}, the first product of this channel"
    if case.asked.topic != "cause" or judgement.verdict == "healthy":
        return ""
    return f"you mean {everybody(case)}"


def _other(case: Case, judgement: Judgement) -> str:
    top = next(iter(judgement.suspects), None)
    if top is None or not case.names_subject or top.product == case.subject:
        return ""
    shown = (point.fact for point in top.ordered if not isinstance(point.fact, DeployFact))
    return f"{plain(top.product)} [{mark_of(next(shown, top.ordered[0].fact))}]"


def unknown_name(case: Case) -> str:
    """In a channel without products: that a name was not found; empty if it was."""
    name, metrics = case.asked.stranger, case.of(METRICS)
    if case.products or not name or metrics is None:
        return ""
    logs = swept(case, LOGS)
    known = {
        *metrics.mapping("within"),
        *metrics.mapping("too_short"),
        *(text_of(row, "product") for row in metrics.rows("shifts")),
        *(logs.mapping("lines") if logs else ()),
    }
    if not known or name in {one.lower() for one in known}:
        return ""
    named = ", ".join(sorted(map(plain, known))[:_MOST_NAMED])
    return f'I found no product "{plain(name)}". I found {named}.'
