"""The meaning of the label that explains a shift: the part that changed, or the service waited for.

If all slow calls carry `peer="bank"`, the bank is slow, for any product that noticed it. Such a
service often has no metrics here, because another company runs it.
"""

import re
from collections.abc import Sequence
from typing import Final

from adapters.llm.triage.names import plain

_ONLY_AT: Final = re.compile(r"([^=]+)=(.+) \((\d+) of (\d+)\)")
_OTHER_END: Final = re.compile(
    r"(?:\w+_)?(?:peer|to|dst|dest|destination|upstream|remote|callee|called|dependency|provider"
    r"|vendor|third_party|target|server_address)(?:_(?:service|name|host|workload|app|svc))*",
    re.IGNORECASE,
)
_MOST_CALLERS: Final = 3


def called_of(only_at: str) -> str:
    """The service at the other end of the calls, by such a label; empty for any other label."""
    found = _ONLY_AT.fullmatch(only_at)
    return plain(found[2]) if found and _OTHER_END.fullmatch(found[1]) else ""


def part_of(only_at: str) -> str:
    """`only pod=search-7, 1 of 12`; empty where nothing explains the shift."""
    found = _ONLY_AT.fullmatch(only_at)
    if found is None:
        return ""
    only = "only" if found[3] == "1" else "such as"
    return f"{only} {plain(found[1])}={plain(found[2])}, {found[3]} of {found[4]}"


def seen_by(callers: Sequence[str]) -> str:
    """`as its callers basket, ledger and 2 more see it`."""
    names = sorted(set(callers))
    more = len(names) - _MOST_CALLERS
    shown = [*names[:_MOST_CALLERS], *([f"{more} more"] if more > 0 else [])]
    both = " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
    return (
        f"as its caller{'s' if len(names) > 1 else ''} {both} see{'' if len(names) > 1 else 's'} it"
    )
