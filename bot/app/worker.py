"""A worker process that shares a port, and its delay before jobs."""

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

    Other replicas take over one that is silent for `lease_s`. Running turns get `grace_s` at SIGTERM;
    the rest of the 30 s is for closing connections. Jobs run every `tick_s`. Kortex gives up one try
    to show a card after `card_call_s`, and shows a dead process's card again after half as much more.
    After `probe_s` without an answer from Slack, a probe asks whether the token still works; health
    checks read that answer. Alerts that arrive within `gather_s` share one edit of their message.
    """

    lease_s: float = LEASE_S
    grace_s: float = 20.0
    tick_s: float = 5.0
    card_call_s: float = CALL_TIMEOUT_S
    probe_s: float = 60.0
    gather_s: float = GATHER_S
