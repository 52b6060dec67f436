"""Notes beside a question about earlier proposals and their decisions."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from adapters.llm.decided import ELSEWHERE, carried_out_note, decision_note, decision_time
from bot.domain.channel import Channel
from bot.domain.ids import Place, SessionId
from bot.domain.proposal import Proposal, ProposalState, became, word
from bot.domain.tenancy import is_shared
from bot.ports.platform import People, by_id
from bot.ports.proposals import ProposalStore
from tools.policy import NAMELESS
from tools.products import Reading

MAX_NOTES: Final = 10
MAX_ELSEWHERE: Final = 5
ELSEWHERE_S: Final = 2 * 3600.0
MAX_WORDS: Final = 500  # characters of a reason or an outcome

# What failed, expired or was not run may be proposed again.
_STANDS: Final = frozenset(
    {
        ProposalState.CONFIRMED,
        ProposalState.DISPATCHING,
        ProposalState.SUCCEEDED,
        ProposalState.UNKNOWN,
        ProposalState.REJECTED,
    }
)


async def proposal_notes(
    store: ProposalStore,
    session: SessionId,
    place: Place,
    channel: Channel,
    people: People = by_id,
) -> Sequence[str]:
    """One line each, oldest first: the session's latest `MAX_NOTES`; of its channel's other threads
    the open ones and the decisions of the last two hours, the latest `MAX_ELSEWHERE`; and as many
    actions from other channels in that time, for products that this one may read.
    """
    around = await store.around(session, place, _read_in(channel), ELSEWHERE_S, MAX_ELSEWHERE)
    own, threads, others = list(around.own)[-MAX_NOTES:], list(around.threads), around.others
    same = [row for row in others if _is_of_that_name(row, place, channel)]
    here = people(place, _deciders(own + threads))
    # A decision of another place names people by that place's ids.
    names, *there = await asyncio.gather(
        here, *(people(row.place, _deciders([row])) for row in same)
    )
    told = [
        *((row, _note(row, "", names)) for row in own),
        *((row, _note(row, ELSEWHERE, names)) for row in threads),
        *((row, _note_of_same(row, of)) for row, of in zip(same, there, strict=True)),
        *((row, _note_of_other(row)) for row in others if row not in same),
    ]
    return [note for _, note in sorted(told, key=lambda one: (one[0].created_at, one[0].id))]


def _read_in(channel: Channel) -> tuple[str, ...] | None:
    """The products that may be read of there; None: all."""
    return None if channel.rule.tools_read is Reading.ALL else channel.rule.products


def _is_of_that_name(row: Proposal, place: Place, channel: Channel) -> bool:
    """Over HTTP a channel is gone by its name alone, on the chat platform by its id."""
    is_named = channel.is_known and not channel.name.startswith(NAMELESS)
    is_over_http = not (is_shared(row.place.team) and is_shared(place.team))
    return is_named and is_over_http and row.channel_name == channel.name


def _note(row: Proposal, where: str, names: Mapping[str, str]) -> str:
    return (
        f"Proposal {row.id} ({row.action} {row.product} {row.params}){where}: {_became(row, names)}"
    )


def _note_of_same(row: Proposal, names: Mapping[str, str]) -> str:
    """Its parameters and the control plane's words stay where they were asked for."""
    then = decision_note(became(row, _who(row, names)), "", stands=row.state in _STANDS)
    return f"Proposal {row.id} ({row.action} {row.product} …){ELSEWHERE}: {then}"


def _note_of_other(row: Proposal) -> str:
    """The other channel may be private: its name, people and parameters are left out."""
    at = row.decided_at or row.created_at
    return carried_out_note(row.action, row.product, at, became(row), stands=row.state in _STANDS)


def _became(row: Proposal, names: Mapping[str, str]) -> str:
    if row.state is ProposalState.PENDING:
        return f"{word(row.state)} until {row.expires_at:%H:%M} UTC; do not propose it again."
    told = (row.outcome or row.reason)[:MAX_WORDS]
    return decision_note(became(row, _who(row, names)), told, stands=row.state in _STANDS)


def _who(row: Proposal, names: Mapping[str, str]) -> str:
    at = f" at {decision_time(row.decided_at)}" if row.decided_at else ""
    return f" by {names[decider]}{at}" if (decider := _decider(row)) else ""


def _decider(row: Proposal) -> str:
    expired = row.state is ProposalState.EXPIRED  # by the clock
    return "" if expired or not row.decided_by else row.decided_by


def _deciders(rows: Sequence[Proposal]) -> list[str]:
    return [who for row in rows if (who := _decider(row))]
