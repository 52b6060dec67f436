"""The tests of a rule's settings: a whole value, or an RE2 pattern of whole values.

RE2's time is linear in a value, even a hostile one.
"""

import re2

from bot.domain.alerts import Matches


def is_exactly(value: str) -> Matches:
    return lambda given: given == value


def fits(pattern: str) -> Matches:
    """Anchored at both ends, as Alertmanager's are. Raises re2.error."""
    compiled = re2.compile(pattern)
    return lambda given: compiled.fullmatch(_encodable(given)) is not None


def both(first: Matches, second: Matches) -> Matches:
    """One label named by both kinds."""
    return lambda given: first(given) and second(given)


def _encodable(value: str) -> str:
    # RE2 reads UTF-8, which has no lone surrogates.
    return value.encode("utf-8", "replace").decode()
