"""The record of one round, its JSON, and a replay that shows nothing twice.

The earlier attempt showed the recorded events. Showing them again would take a finished answer back
to its start.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from pydantic import JsonValue, TypeAdapter

from adapters.llm.messages import ErrorKind, Message, Role, StopReason, ToolCall, Usage
from bot.domain.turn_events import TurnEvent
from bot.ports.durability import Journal
from tools.records import ToolOutcome


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """One finished round: paid once, replayed from here after a crash.

    `error`: the round broke after text was shown, or no provider answered. `stopped`: a person
    ended it; `text` is the part before. `provider` is empty if none was asked. `passed_on`: a fast
    model's void round, answered by the full model. `failing`: providers without an answer, and
    since when. `own_words`: the beginning of `text` that Kortex wrote.
    """

    number: int
    provider: str = ""
    model: str = ""
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    stop_reason: StopReason = StopReason.ERROR
    usage: Usage = field(default_factory=Usage)
    cost_usd_micros: int | None = 0
    provider_blocks: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    error: ErrorKind | None = None
    error_message: str = ""
    stopped: bool = False
    out_of_budget: bool = False
    passed_on: bool = False
    failing: tuple[tuple[str, datetime], ...] = ()
    own_words: str = ""

    def as_message(self) -> Message:
        return Message(
            Role.ASSISTANT,
            text=self.text,
            tool_calls=self.tool_calls,
            provider=self.provider,
            provider_blocks=self.provider_blocks,
        )


_ROUND = TypeAdapter(RoundRecord)
_OUTCOME = TypeAdapter(ToolOutcome)


def round_to_json(record: RoundRecord) -> JsonValue:
    """A JSON value that `round_from_json` restores."""
    value: JsonValue = _ROUND.dump_python(record, mode="json")
    return value


def round_from_json(value: JsonValue) -> RoundRecord:
    return _ROUND.validate_python(value)


def outcome_to_json(outcome: ToolOutcome) -> JsonValue:
    """A JSON value that `outcome_from_json` restores; the raw backend value is left behind."""
    value: JsonValue = _OUTCOME.dump_python(outcome, mode="json", exclude={"record": {"raw"}})
    return value


def without_raw(outcome: ToolOutcome) -> ToolOutcome:
    """As `outcome_from_json` restores it of `outcome_to_json`, without either."""
    record = replace(outcome.record, raw=None)
    return ToolOutcome(record, outcome.content, outcome.summary, outcome.proposal_id)


def outcome_from_json(value: JsonValue) -> ToolOutcome:
    return _OUTCOME.validate_python(value)


class QuietReplay(Journal):
    """A journal, and a feed of the events between its steps.

    Events of replayed steps are held until the first step runs.
    """

    def __init__(self, journal: Journal, tell: Callable[[TurnEvent], None]) -> None:
        self._journal = journal
        self._tell = tell
        self._replayed: list[TurnEvent] = []
        self._runs = False

    def feed(self, event: TurnEvent) -> None:
        """Show the event, now or when a step runs. Never blocks."""
        if self._runs:
            self._tell(event)
        else:
            self._replayed.append(event)

    async def step(
        self, name: str, run: Callable[[], Awaitable[JsonValue]], *, with_next: bool = False
    ) -> JsonValue:
        return await self._journal.step(name, self._aloud(run), with_next=with_next)

    async def steps(
        self, parts: Sequence[tuple[str, Callable[[], Awaitable[JsonValue]]]]
    ) -> Sequence[JsonValue]:
        aloud = [(name, self._aloud(run)) for name, run in parts]
        return await self._journal.steps(aloud)

    async def got_on(self) -> None:
        await self._journal.got_on()

    def _aloud(self, run: Callable[[], Awaitable[JsonValue]]) -> Callable[[], Awaitable[JsonValue]]:
        async def running() -> JsonValue:
            self._runs = True
            for event in self._replayed:
                self._tell(event)
            self._replayed.clear()
            return await run()

        return running
