"""How often one person may ask, so that one cannot starve the rest. Per replica, in memory."""

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from bot.domain.ids import Person, TurnId

_PEOPLE_REMEMBERED = 10_000


@dataclass(slots=True)
class _Asked:
    recent: deque[tuple[float, TurnId]] = field(default_factory=deque)
    told_at: float | None = None


class AskLimiter:
    """At most `limit` turns per person in `window_s` seconds of a monotonic clock."""

    def __init__(self, limit: int, window_s: float, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._window_s = window_s
        self._clock = clock
        self._people: OrderedDict[Person, _Asked] = OrderedDict()

    def admits(self, person: Person, turn: TurnId) -> bool:
        """Whether the turn may start. The same turn delivered again always may."""
        now = self._clock()
        asked = self._of(person)
        while asked.recent and now - asked.recent[0][0] >= self._window_s:
            asked.recent.popleft()
        if any(known == turn for _, known in asked.recent):
            return True
        if len(asked.recent) >= self._limit:
            return False
        asked.recent.append((now, turn))
        return True

    def tells(self, person: Person) -> bool:
        """Whether to say so now: once per window, the rest is silence."""
        now = self._clock()
        asked = self._of(person)
        if asked.told_at is not None and now - asked.told_at < self._window_s:
            return False
        asked.told_at = now
        return True

    def _of(self, person: Person) -> _Asked:
        asked = self._people.setdefault(person, _Asked())
        self._people.move_to_end(person)
        if len(self._people) > _PEOPLE_REMEMBERED:
            self._people.popitem(last=False)
        return asked
