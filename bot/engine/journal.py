"""A workflow's steps on record, and the step that is given up because it ends its process."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Final

from dbos import DBOS, StepOptions
from pydantic import JsonValue

from bot.ports.failures import GivenUp, StorageUnavailable, SurfaceFailed

_RETRIES: Final = 7  # after 0.5 s, doubled: half a minute, beside the database's own patience
# What is on record in place of a step's value.
_GIVEN_UP: Final = "kortex:given-up"

Run = Callable[[], Awaitable[JsonValue]]


def _worth_retrying(error: BaseException) -> bool:
    return isinstance(error, StorageUnavailable) or (
        isinstance(error, SurfaceFailed) and error.retryable
    )


def _options(name: str) -> StepOptions:
    return StepOptions(
        name=name,
        retries_allowed=True,
        max_attempts=_RETRIES,
        interval_seconds=0.5,
        should_retry=_worth_retrying,
    )


class DurableJournal:
    """`bot.ports.durability.Journal` inside a workflow.

    With `gives_up` the first step that is not on record does not run: it is recorded as given up and
    raised as GivenUp, now and in every replay. Those after it run.
    """

    def __init__(self, *, gives_up: bool = False) -> None:
        self._gives_up = gives_up

    async def step(self, name: str, run: Run) -> JsonValue:
        """One step, checkpointed. Raises GivenUp."""
        return _value(await DBOS.run_step_async(_options(name), self._body(name, run)))

    async def steps(self, parts: Sequence[tuple[str, Run]]) -> Sequence[JsonValue]:
        """Several at once; their ids are drawn in order, so a replay finds each its own."""
        reserved = [(DBOS.reserve_step(), name, self._body(name, run)) for name, run in parts]
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(slot.run_async(_options(name), body))
                for slot, name, body in reserved
            ]
        return [_value(task.result()) for task in tasks]

    def _body(self, name: str, run: Run) -> Callable[[], Coroutine[None, None, JsonValue]]:
        gives_up = self._gives_up  # all of those that run at once

        async def body() -> JsonValue:
            if gives_up:
                self._gives_up = False
                return {_GIVEN_UP: name}
            return await run()

        return body


def _value(recorded: JsonValue) -> JsonValue:
    if isinstance(recorded, dict) and _GIVEN_UP in recorded:
        raise GivenUp(str(recorded[_GIVEN_UP]))
    return recorded
