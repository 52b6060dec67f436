"""The time that an answer is about, in words, where it is not the usual one up to now."""

from adapters.llm.triage.case import Case


def period(case: Case) -> str:
    """` between 08:00 and 09:00 UTC`; empty for a range up to now that was read whole.

    Always given around a point in time.
    """
    start, end, now = case.asked.start, case.asked.end, case.now
    is_told = case.is_past or case.asked.is_cut or case.asked.at is not None
    if start is None or end is None or now is None or not is_told:
        return ""
    form = "%H:%M" if start.date() == end.date() == now.date() else "%Y-%m-%d %H:%M"
    return f" between {start:{form}} and {end:{form}} UTC"


def framed(case: Case, head: str) -> str:
    when = period(case).strip()
    return f"{when[0].upper()}{when[1:]}, {head[0].lower()}{head[1:]}" if when else head
