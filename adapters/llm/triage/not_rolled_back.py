"""Why a requested rollback is not proposed."""

from collections.abc import Iterator

from adapters.llm.triage.case import ROLLBACK_ACTION, Case, Signals, plain
from adapters.llm.triage.deploy_facts import DEPLOYS
from adapters.llm.triage.done import waiting
from adapters.llm.triage.evidence import PROPOSE
from adapters.llm.triage.is_it_over import cause_line
from adapters.llm.triage.judgement import Judgement
from adapters.llm.triage.next_step import next_step
from adapters.llm.triage.plan import mark_of, worth_rolling_back
from adapters.llm.triage.telling import clock


def no_rollback(case: Case, judgement: Judgement) -> str:
    """One sentence; empty where none is asked for, or where it is due."""
    if not case.asked.wants_undone or not case.names_subject or case.called(PROPOSE):
        return ""
    subject, top = case.subject, next(iter(judgement.suspects), None)
    if (
        top is not None
        and top.product == subject
        and not case.is_past
        and worth_rolling_back(judgement)
    ):
        return ""  # it is proposed or decided already, which the answer ends with
    return f"I do not propose a rollback of {plain(subject)}: {_reason(case, judgement)}."


def propose_anyway(case: Case) -> str:
    """How to get the card all the same."""
    return f"Write `propose {_action(case)} {plain(case.subject)}` for a card anyway."


def _reason(case: Case, judgement: Judgement) -> str:
    one = next((each for each in judgement.suspects if each.product == case.subject), None)
    if one is not None and one.over_since is not None:
        return (
            f"what changed in it is back to normal since {clock(one.over_since, case.now)} "
            f"[{mark_of(one.ordered[0].fact)}]"
        )
    if case.is_past:
        return "I did not check the current state; ask again without a time"
    if case.of(DEPLOYS) is None:
        return "its deploys could not be read"
    last = next((one for one in judgement.facts.deploys if one.product == case.subject), None)
    if last is None:
        return "I found no deploy of it in that time"
    return (
        "no problem of its own began soon after its last deploy, "
        f"{last.version} at {clock(last.at, case.now)} [{last.seen.mark}]"
    )


def _action(case: Case) -> str:
    declared = (one for one in case.actions if "rollback" in one.replace("-", "").lower())
    return plain(next(declared, ROLLBACK_ACTION))


def asked_again(case: Case, judgement: Judgement, signals: Signals) -> Iterator[str]:
    """The answer to a request for a rollback whose card may be open: where it is, and why."""
    if judgement.verdict == "cause":
        yield f"**{next_step(case, judgement, signals)}**"
        yield cause_line(case, judgement).replace("**", "")
    else:
        yield f"**{next(waiting(case.open_proposals))}**"
