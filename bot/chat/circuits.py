"""Circuit breakers: which providers are skipped now, why, and until when.

One per provider and process.

Some vendors limit each model separately; then only that model is skipped. Otherwise a rate limit
skips the provider for the time it names. A used-up quota or a refused key skips it for minutes.
Failures to answer skip it only after several in a row, longer each time. After that time one round
is a trial and the rest wait for its result. An error of a single request (too long, refused, not
valid) does not count.

The log reports the start and the end of an outage, not each trial.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

import structlog

from adapters.llm.messages import DoneChunk, ErrorChunk, ErrorKind

_log = structlog.get_logger(__name__)

DEFAULT_COOLDOWN_S: Final = 20.0  # for a 429 without Retry-After
LONGEST_COOLDOWN_S: Final = (
    3600.0  # tried again within the hour, for any wait that a backend asks for
)
HOPELESS_S: Final = 300.0  # a quota or a key that a person must fix
FAILURES_TO_OPEN: Final = 3
FIRST_OPEN_S: Final = 15.0
LONGEST_OPEN_S: Final = 300.0
TRIAL_S: Final = 30.0  # the longest time that a trial round may keep others out
# Between two failures without a request its state is unknown, and the second counts as an outage of
# its own.
ONE_OUTAGE: Final = timedelta(hours=1)

_WAITS: Final = frozenset({ErrorKind.RATE_LIMITED})
_HOPELESS: Final = frozenset({ErrorKind.QUOTA, ErrorKind.AUTH})
_FAILURES: Final = frozenset(
    [ErrorKind.OVERLOADED, ErrorKind.UNREACHABLE, ErrorKind.TIMEOUT, ErrorKind.CUT,
     ErrorKind.PROTOCOL]
)  # fmt: skip


class CircuitState(StrEnum):
    CLOSED = "closed"  # asked
    OPEN = "open"  # left alone
    TRYING = "trying"  # its time is up: the next round finds out


@dataclass(frozen=True, slots=True)
class Circuit:
    """The state of one provider. `wait_s`: seconds until the next request; `why` in a few words.

    `asked_to_wait`: the provider named that time itself; an earlier request would make it worse.
    """

    state: CircuitState = CircuitState.CLOSED
    wait_s: float = 0.0
    failures: int = 0  # in a row
    why: str = ""
    asked_to_wait: bool = False
    has_answered: bool = False  # since the start

    @property
    def pause(self) -> str:
        """Why the provider is not asked, and for how long."""
        why = "key refused" if self.why == ErrorKind.AUTH else self.why.replace("_", " ")
        return f"{why}, not asked for {math.ceil(self.wait_s)} s"


_UNHEARD, _ANSWERING = Circuit(), Circuit(has_answered=True)


@dataclass(slots=True)
class _Circuit:
    until: float = 0.0
    failures: int = 0
    why: str = ""
    asked_to_wait: bool = False
    since: datetime | None = None
    failed_at: datetime | None = None
    tries: int = 0  # since then, in vain
    is_logged: bool = False


def _wall() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class Circuits:
    """The circuits of all providers. `clock` is monotonic seconds; `wall` is the time of day."""

    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], datetime] = _wall
    _by_model: dict[tuple[str, str | None], _Circuit] = field(default_factory=dict)
    _answered: set[str] = field(default_factory=set)

    def of(self, provider: str, model: str = "") -> Circuit:
        """The circuit of a provider's model now; empty is the one it is configured with."""
        if not self._by_model:
            return _ANSWERING if provider in self._answered else _UNHEARD
        whole, own = self._at(provider, None), self._at(provider, model)
        found = max(whole, own, key=lambda circuit: (circuit.wait_s, circuit.state != "closed"))
        return replace(found, has_answered=provider in self._answered)

    def failing_since(self, provider: str) -> datetime | None:
        """The first failure of its present outage that this process saw; None where it answers."""
        began = [d.since for (name, _), d in self._by_model.items() if name == provider and d.since]
        return min(began, default=None)

    def _at(self, provider: str, model: str | None) -> Circuit:
        circuit = self._by_model.get((provider, model))
        if circuit is None:
            return Circuit()
        left_s = max(0.0, circuit.until - self.clock())
        if left_s:
            open_ = CircuitState.OPEN
            return Circuit(open_, left_s, circuit.failures, circuit.why, circuit.asked_to_wait)
        state = CircuitState.TRYING if circuit.until else CircuitState.CLOSED
        return Circuit(state, 0.0, circuit.failures, circuit.why)

    def asked(self, provider: str, model: str = "") -> None:
        """A round goes to a model. During its trial, further rounds skip the provider."""
        for which in (None, model):
            if self._at(provider, which).state is CircuitState.TRYING:
                self._by_model[provider, which].until = self.clock() + TRIAL_S

    def heard(
        self,
        provider: str,
        end: DoneChunk | ErrorChunk | None,
        model: str = "",
        *,
        by_model: bool = False,
    ) -> None:
        """The end of a round; None if a person stopped it, which does not count.

        `by_model`: the vendor limits each model separately.
        """
        if end is None:
            return
        limited = by_model and isinstance(end, ErrorChunk) and end.kind in _WAITS
        if limited or isinstance(end, DoneChunk):
            self._over(provider, self._by_model.pop((provider, None), None))  # it answered
        if isinstance(end, DoneChunk):
            self._answered.add(provider)
            self._by_model.pop((provider, model), None)
        else:
            key = (provider, model if limited else None)
            self._failed(provider, self._by_model.setdefault(key, _Circuit()), end)

    def _failed(self, provider: str, circuit: _Circuit, end: ErrorChunk) -> None:
        asked_s = min(end.retry_after_s or 0.0, LONGEST_COOLDOWN_S)
        if end.kind in _WAITS:
            wait_s = asked_s or DEFAULT_COOLDOWN_S
        elif end.kind in _HOPELESS:
            wait_s = max(asked_s, HOPELESS_S)
        elif end.kind in _FAILURES:
            circuit.failures += 1
            wait_s = max(asked_s, _open_s(circuit.failures))
        else:  # it answered, if only to say no
            self._over(provider, circuit)
            circuit.until, circuit.failures, circuit.why, circuit.since = 0.0, 0, "", None
            return
        began = circuit.since
        self._lasts(circuit)
        if circuit.since != began:
            circuit.tries, circuit.is_logged = 0, False
        circuit.tries += 1
        if end.kind not in _WAITS and not circuit.is_logged:
            circuit.is_logged = True
            _log.warning("provider.down", provider=provider, kind=end.kind.value, why=end.message)
        circuit.why = end.kind.value
        circuit.asked_to_wait = end.kind in _WAITS or asked_s > 0
        circuit.until = self.clock() + wait_s if wait_s else 0.0

    def _over(self, provider: str, circuit: _Circuit | None) -> None:
        if circuit is None or circuit.since is None or not circuit.is_logged:
            return
        circuit.is_logged = False
        away_s = round((self.wall() - circuit.since).total_seconds())
        _log.info("provider.recovered", provider=provider, away_s=away_s, tries=circuit.tries)

    def _lasts(self, circuit: _Circuit) -> None:
        now = self.wall()
        if (
            circuit.since is None
            or circuit.failed_at is None
            or now - circuit.failed_at > ONE_OUTAGE
        ):
            circuit.since = now
        circuit.failed_at = now


def _open_s(failures: int) -> float:
    extra = failures - FAILURES_TO_OPEN
    return min(FIRST_OPEN_S * 2.0 ** min(extra, 10), LONGEST_OPEN_S) if extra >= 0 else 0.0
