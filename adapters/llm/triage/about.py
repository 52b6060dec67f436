"""Whom an answer is about, said where that is not plain: another product than was asked about, or none."""

from typing import Final

from adapters.llm.triage.case import Case, plain
from adapters.llm.triage.judgement import Judgement
from adapters.llm.triage.telling import named

_MOST_NAMED: Final = 5


def own_blindness(case: Case, judgement: Judgement) -> str:
    """Where nothing of whoever is asked about could be compared, that, and who stands out instead."""
    if not judgement.own_blind:
        return ""
    other = _other(case, judgement)
    instead = f" What stands out is {other}." if other else ""
    return f"You asked about {judgement.own_blind}.{instead}"


def other_than_asked(case: Case, judgement: Judgement) -> str:
    """That somebody else stands out than was asked about; empty where that is said already."""
    other = _other(case, judgement)
    if not other or judgement.own_blind:
        return ""
    return f"You asked about {plain(case.subject)}; what stands out is {other}."


def of_whom(case: Case, product: str, text: str) -> str:
    """A line of evidence, with its product where it is another than the one asked about."""
    is_plain = product == case.subject and (case.names_subject or len(case.products) == 1)
    return text if is_plain else named(product, text)


def everybody(case: Case) -> str:
    """The products that are looked at where nobody is named, by name where they are few."""
    names = [plain(one) for one in case.products]
    if len(names) > _MOST_NAMED:
        return "all products of this channel"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def assumed_of_all(case: Case, judgement: Judgement) -> str:
    """What a question that names nobody was taken for; empty where the answer says it anyway."""
    if case.names_subject or len(case.products) < 2 or case.asked.apart or case.asked.thought:
        return ""
    if case.asked.topic == "logs":
        return f"no product is named, so this is {plain(case.subject)}, the first of this channel"
    if case.asked.topic != "cause" or judgement.verdict == "healthy":
        return ""
    return f"no product is named, so this is about {everybody(case)}"


def _other(case: Case, judgement: Judgement) -> str:
    top = next(iter(judgement.suspects), None)
    if top is None or not case.names_subject or top.product == case.subject:
        return ""
    return plain(top.product)
