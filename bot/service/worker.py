"""The place of one worker process among those that share a port."""

from dataclasses import dataclass


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
