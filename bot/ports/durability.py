"""Steps that run once, starts that survive a crash, and stops."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from pydantic import JsonValue

from bot.domain.ids import ProposalId, TurnId, UserId
from bot.domain.session import Ask
from bot.ports.proposals import Decision


class Journal(Protocol):
    """Durable steps of one workflow. A recorded step does not run again; its value is replayed."""

    async def step(
        self,
        name: str,
        run: Callable[[], Awaitable[JsonValue]],
        *,
        with_next: bool = False,
    ) -> JsonValue:
        """Run once, then answer from the record. Raises StepAbandoned.

        `with_next`: it may be recorded with the next step, and so run again after a crash.
        """
        ...

    async def steps(
        self,
        parts: Sequence[tuple[str, Callable[[], Awaitable[JsonValue]]]],
    ) -> Sequence[JsonValue]:
        """Several at once; values in the order given. After a crash among them all may run again."""
        ...

    async def got_on(self) -> None:
        """Record that the running step made progress: earlier crashes no longer count against it."""
        ...


class StopSignal(Protocol):
    """Whether a person asked a turn to stop."""

    def then(self, call: Callable[[], object]) -> Callable[[], None]:
        """Call `call` at the stop, or now if it happened. The result cancels the call."""
        ...

    @property
    def requested(self) -> bool: ...

    @property
    def by(self) -> str:
        """The person's id on the platform; empty before a stop, or if it is unknown."""
        ...


class StopRequests(Protocol):
    """Stops asked for, across replicas, ahead of any queue."""

    async def request(self, turn: TurnId, by: UserId) -> bool:
        """Ask a running turn to stop; False when it is not running."""
        ...


class Stops(StopRequests, Protocol):
    """And heard of, where the turn runs."""

    def watch(self, turn: TurnId) -> StopSignal: ...


class Workflows(Protocol):
    """Durable starts: when a call returns, the work survives a crash and runs once."""

    async def start_turn(self, ask: Ask) -> None:
        """Answer a message. The same ask again, here or on another replica, is the same turn."""
        ...

    async def start_decision(self, proposal_id: ProposalId, decision: Decision) -> None:
        """Carry a person's or the clock's decision through: decide, dispatch, show."""
        ...
