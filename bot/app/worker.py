"""A worker process among those that share a port, and how long it waits before it acts."""

from dataclasses import dataclass

from bot.actions.display import CALL_TIMEOUT_S
from bot.alerts.threads import GATHER_S
from bot.engine.config import LEASE_S


@dataclass(frozen=True, slots=True)
class Worker:
    """One of `count` workers, numbered from 0.

    All workers listen on `port`. `own_port` is this worker's alone, for its probes and metrics.
    """

    number: int
    count: int
    port: int
    own_port: int


def count_of(worker: Worker | None) -> int:
    """Among how many processes this one divides its allowances; 1 for a process of its own."""
    return worker.count if worker else 1


@dataclass(frozen=True, slots=True)
class Times:
    """In seconds.

    A replica silent for `lease_s` is taken over. Running turns get `grace_s` at SIGTERM; the rest of
    the 30 s is for closing connections. `tick_s` lies between two looks at what is due. One try to
    show a card is given up after `card_call_s`, and what a dead process was painting is painted anew
    after half as much again. Slack is asked whether it takes our token where nothing was heard of it
    for `probe_s`: probes of ours all read that one answer. What alerts say within `gather_s` is one edit of their message.
    """

    lease_s: float = LEASE_S
    grace_s: float = 20.0
    tick_s: float = 5.0
    card_call_s: float = CALL_TIMEOUT_S
    probe_s: float = 60.0
    gather_s: float = GATHER_S
