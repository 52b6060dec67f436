"""Logs and deploys as somebody asked to see them: listed, not weighed."""

from collections.abc import Iterator, Sequence
from typing import Final

from adapters.llm.triage.case import Case, Seen, plain
from adapters.llm.triage.deploy_facts import DEPLOYS, deploys
from adapters.llm.triage.plan import GET_LOGS
from adapters.llm.triage.surroundings import quoted
from adapters.llm.triage.telling import clock
from tools.core.get_recent_deploys import NO_SOURCE

_MOST_MARKS: Final = 12
_MOST_LINES: Final = 12


def log_lines(case: Case) -> Iterator[str]:
    """The newest lines of a product, as it wrote them."""
    seen, subject = case.of(GET_LOGS), plain(case.subject)
    if seen is None:
        failed = [one for one in case.seen if not one.ok]
        yield f"The logs of {subject or 'nobody named'} could not be read. {marks(failed)}".strip()
        return
    rows = seen.rows("lines")[:_MOST_LINES]
    if not rows:
        yield f"{subject} wrote no lines in that time [{seen.mark}]."
        return
    yield f"The newest lines of {subject} [{seen.mark}]:"
    yield "\n".join(f"- {row.get('ts', '')} {quoted(str(row.get('message', '')))}" for row in rows)


def deploy_lines(case: Case) -> Iterator[str]:
    """Deploys, newest first, with who made them."""
    found, seen = deploys(case), case.of(DEPLOYS)
    if seen is None:
        failed = [one for one in case.seen if not one.ok]
        yield f"Deploys could not be read. {marks(failed)}".strip()
    elif NO_SOURCE in seen.texts("notes"):
        yield f"No deploy source is connected: no deploy was received in 90 days [{seen.mark}]."
    elif not found:
        yield f"No deploys in that time [{seen.mark}]."
    else:
        yield f"Deploys, newest first [{seen.mark}]:"
        rows = {str(row.get("ts")): row for row in seen.rows("deploys")}
        actors = {at: quoted(str(row.get("actor") or "")) for at, row in rows.items()}
        lines = []
        for one in found[:_MOST_LINES]:
            by = actors.get(one.at.strftime("%Y-%m-%dT%H:%M:%SZ"), "")
            who = f" by {by}" if by else ""
            lines.append(f"- {one.at:%Y-%m-%d %H:%M} UTC: {one.product} {one.version}{who}")
        yield "\n".join(lines)


def last_deploy(case: Case) -> Iterator[str]:
    """Of the product that is named; else of anybody, and named as theirs."""
    found, read = deploys(case), case.of(DEPLOYS)
    own = [one for one in found if one.product == case.subject or not case.names_subject]
    if read is None:
        return
    if NO_SOURCE in read.texts("notes"):
        yield f"deploys: no deploy source is connected [{read.mark}]"
        return
    if not found:
        yield f"no deploys in that time [{read.mark}]"
        return
    fact = (own or found)[0]
    words = "the last deploy was"
    if not own:
        words = "no deploy of its own in that time; the last of others was"
    yield f"{words} {fact.product} {fact.version} at {clock(fact.at, case.now)} [{fact.seen.mark}]"


def marks(found: Sequence[Seen]) -> str:
    """The numbers that an answer cites them by, a dozen at most."""
    return " ".join(f"[{s.mark}]" for s in found[:_MOST_MARKS] if s.mark)
