"""Log severities in order, and the spellings that backends use for them."""

from tools.errors import InvalidArguments

LEVELS = ("debug", "info", "warn", "error", "fatal")
_SPELLINGS = {
    "trace": "debug",
    "notice": "info",
    "warning": "warn",
    "err": "error",
    "critical": "fatal",
    "crit": "fatal",
    "emerg": "fatal",
    "panic": "fatal",
}


def normalized(level: str) -> str:
    """One of LEVELS; a level that is none of them stays as it is, in lower case."""
    lowered = level.strip().lower()
    return _SPELLINGS.get(lowered, lowered)


def at_least(minimum: str) -> frozenset[str]:
    """Every spelling of the levels from a minimum up. Raises InvalidArguments on an unknown one."""
    lowest = normalized(minimum)
    if lowest not in LEVELS:
        raise InvalidArguments(f"unknown level {minimum!r}; levels are: {', '.join(LEVELS)}")
    wanted = frozenset(LEVELS[LEVELS.index(lowest) :])
    return wanted | {spelling for spelling, level in _SPELLINGS.items() if level in wanted}
