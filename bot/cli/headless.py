"""One question without Slack: the surface of `kortex ask` and `kortex demo --ask`, and its JSON.

A proposal is printed and never stored: it cannot be confirmed here.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence

import orjson
from pydantic import JsonValue

from bot.domain.chart import Chart
from bot.domain.findings import findings_of
from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, TurnId, UserId
from bot.domain.proposal import Proposal
from bot.domain.roles import HeldRoles
from bot.domain.session import Ask
from bot.domain.turn_events import ToolProgress, TurnEnd, TurnEvent, TurnFinished
from bot.ports.platform import OnPart, PlatformTraits, no_part
from tools.records import CallEnded, ToolOutcome
from tools.redactor import Redacted

TEAM = TeamId("headless")


def headless_ask(question: Redacted, channel: str, ts: str) -> Ask:
    """The ask of a question from the command line. `ts` makes it one turn."""
    place = Place(TEAM, ChannelId(channel), MessageTs(ts))
    return Ask(place, MessageTs(ts), Person(TEAM, UserId("operator")), question, channel)


class NamedByUser:
    """Roles where no directory exists: `[roles.NAME] users` decides."""

    def __init__(self, users: Mapping[str, Sequence[str]]) -> None:
        self._users = users

    async def held(self, person: Person, roles: Sequence[str]) -> HeldRoles:
        return HeldRoles(frozenset(r for r in roles if person.user in self._users.get(r, ())))


class PlainJournal:
    """Steps that are run and not remembered: one process, one question."""

    async def step(
        self,
        name: str,  # noqa: ARG002 - the port's
        run: Callable[[], Awaitable[JsonValue]],
        *,
        with_next: bool = False,  # noqa: ARG002 - the port's
    ) -> JsonValue:
        return await run()

    async def steps(
        self, parts: Sequence[tuple[str, Callable[[], Awaitable[JsonValue]]]]
    ) -> Sequence[JsonValue]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_awaited(run)) for _, run in parts]
        return [task.result() for task in tasks]

    async def got_on(self) -> None:
        """Nothing to record."""


async def _awaited(run: Callable[[], Awaitable[JsonValue]]) -> JsonValue:
    return await run()


class HeadlessStream:
    """Prints progress; the turn itself returns the final text."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def feed(self, event: TurnEvent) -> None:
        if isinstance(event, ToolProgress) and isinstance(event.event, CallEnded):
            record = event.event.outcome.record
            summary = event.event.outcome.summary if record.ok else f"failed: {record.message}"
            self._tell(
                f"[E{event.evidence}] {record.name.removeprefix('core__')}: {summary} ({record.latency_ms} ms)"
            )

    async def finish(self, final: TurnFinished, on_part: OnPart = no_part) -> None: ...

    async def aclose(self) -> None: ...


# A terminal shows anything whole; what would be proposed there is what may be proposed in a thread.
TRAITS = PlatformTraits(
    name="headless",
    card_chars=2_900,
    preview_chars=2_500,
    message_chars=1_000_000,
    edits_per_minute=math.inf,
    private_messages=True,
    forms=False,
    decides=False,
)


class HeadlessSurface:
    """`bot.ports.platform.ChatSurface` for the command line; keeps what would be proposed."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self.proposals: list[Proposal] = []

    @property
    def traits(self) -> PlatformTraits:
        return TRAITS

    async def open_answer(self, ask: Ask) -> MessageTs:
        return ask.ts

    def stream(self, ask: Ask, ts: MessageTs) -> HeadlessStream:  # noqa: ARG002 - the port's
        return HeadlessStream(self._tell)

    async def show_card(self, proposal: Proposal) -> MessageTs:
        self.proposals = [p for p in self.proposals if p.id != proposal.id] + [proposal]
        return MessageTs(proposal.id)

    async def whisper(
        self,
        place: Place,  # noqa: ARG002
        user: UserId,  # noqa: ARG002
        text: str,
        charts: Sequence[Chart] = (),  # noqa: ARG002
    ) -> None:
        """Print it: there is one person here."""
        self._tell(text)

    async def say(
        self,
        place: Place,  # noqa: ARG002 - the port's, as are the charts
        text: str,
        key: str,
        charts: Sequence[Chart] = (),  # noqa: ARG002
    ) -> MessageTs:
        """Print the line; a key that was used before does not matter."""
        self._tell(text)
        return MessageTs(key)


def answer_json(
    final: TurnFinished, proposals: Sequence[Proposal], products: Sequence[str] = ()
) -> dict[str, JsonValue]:
    """The JSON of `ask`, `demo --ask` and `eval`. `products` are the channel's."""
    return {
        "answer": final.text,
        **findings_of(final, products).as_json(),
        "end": final.end.value,
        "stop_reason": _stop_reason(final),
        "provider": final.provider,
        "model": final.model,
        "rounds": final.rounds,
        "tool_calls": [_call_json(o) for o in final.outcomes],
        "evidence": [
            {
                "number": f"E{e.number}",
                "tool_call_id": e.tool_call_id,
                "tool": e.tool,
                "summary": e.summary,
                "ok": e.ok,
                "truncated": e.truncated,
                "result": _json_or_text(e.content),
            }
            for e in final.evidence
        ],
        "usage": {
            "input_tokens": final.usage.input,
            "input_uncached_tokens": final.usage.input_uncached,
            "cache_read_tokens": final.usage.cache_read,
            "cache_write_tokens": final.usage.cache_write,
            "output_tokens": final.usage.output,
        },
        "cost_usd_micros": final.cost_usd_micros,
        "notices": [*final.notices, *filter(None, (final.changes,)), *_unfinished(final)],
        "claims": [claim.as_json() for claim in final.claims],
        "proposal": _proposal_json(proposals[-1]) if proposals else None,
    }


def _stop_reason(final: TurnFinished) -> str:
    exceeded = final.end is TurnEnd.DEPTH_EXCEEDED
    return "tool_depth_exceeded" if exceeded else final.stop_reason.value


def _unfinished(final: TurnFinished) -> Sequence[str]:
    if final.end is not TurnEnd.DEPTH_EXCEEDED:
        return ()
    return (
        f"no conclusion within {final.rounds - 1} rounds of tools ([llm] max_tool_depth); "
        "the results so far are kept. Ask a narrower question",
    )


def _call_json(outcome: ToolOutcome) -> JsonValue:
    record = outcome.record
    return {
        "id": record.tool_call_id,
        "name": record.name,
        "arguments": record.arguments,
        "ok": record.ok,
        "error_code": record.error_code.value if record.error_code else None,
        "latency_ms": record.latency_ms,
        "truncated": record.truncated,
    }


def _proposal_json(proposal: Proposal) -> JsonValue:
    """Without an id and a time to live: there is no such row."""
    return {
        "action": proposal.action,
        "product": proposal.product,
        "params": _json_or_text(proposal.params),
        "rationale": proposal.rationale,
        "blast_radius": proposal.blast_radius,
        "reversible": proposal.reversible,
        "state": "not_raised",
        "dry_run": _json_or_text(proposal.preview) if proposal.preview else None,
        "touches": list(proposal.object_names),
        "may_confirm": list(proposal.confirm_roles),
        "must_also_hold": list(proposal.action_roles),
    }


def _json_or_text(text: str) -> JsonValue:
    try:
        value: JsonValue = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return value


class _Never:
    requested = False
    by = ""

    def then(self, call: Callable[[], object]) -> Callable[[], None]:  # noqa: ARG002 - the port's
        return lambda: None


class NeverStopped:
    """`bot.ports.durability.Stops` where Ctrl-C is the only stop."""

    async def request(self, turn: TurnId, by: UserId) -> bool:  # noqa: ARG002 - the port's
        return False

    def watch(self, turn: TurnId) -> _Never:  # noqa: ARG002 - the port's
        return _Never()
