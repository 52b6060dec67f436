"""A recorded case as the world that a conversation looks at, at the moment of its question."""

from dataclasses import dataclass
from datetime import datetime

from adapters.observe.conventions import SHIPPED, Conventions
from adapters.observe.cursor import UnsealedCodec
from adapters.recorded.packs.recording import Recording
from adapters.recorded.packs.world import packed_world
from bot.wiring.observed import Observed, World


@dataclass(frozen=True, slots=True)
class StoppedClock:
    """Always the same moment."""

    at: datetime

    def now(self) -> datetime:
        """The pack's time, aware, in UTC."""
        return self.at


def world_of(recording: Recording, conventions: Conventions = SHIPPED) -> World:
    """What the case has; history and a platform are in no case."""
    clock = StoppedClock(recording.case.now)
    seen = packed_world(recording, clock, UnsealedCodec(), conventions)
    observed = Observed(
        logs=seen.logs,
        metrics=seen.metrics,
        traces=seen.traces,
        deploys=seen.deploys,
        incidents=None,
        rollouts=None,
        kubernetes=seen.kubernetes,
        admin=None,
        platform=None,
        offer=None,
        patterns=None,
    )
    return World(clock, observed)
