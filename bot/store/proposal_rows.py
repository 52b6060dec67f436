"""A proposal as a row of its table, there and back."""

from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter

from bot.domain.ids import (
    ChannelId,
    MessageTs,
    Person,
    Place,
    ProposalId,
    SessionId,
    TeamId,
    TurnId,
    UserId,
)
from bot.domain.proposal import Proposal, ProposalState, Vote
from bot.store import json_text

_VOTES = TypeAdapter(tuple[Vote, ...])


def votes_text(votes: tuple[Vote, ...]) -> str:
    """As it is stored; equal votes are equal text."""
    return _VOTES.dump_json(votes).decode()


def values_of(proposal: Proposal) -> dict[str, Any]:
    """The values of its columns."""
    return {
        "id": proposal.id,
        "session_id": proposal.session_id,
        "turn_id": proposal.turn_id,
        "team": proposal.place.team,
        "channel": proposal.place.channel,
        "thread_ts": proposal.place.thread_ts,
        "asker_team": proposal.asked_by.team,
        "asker_user": proposal.asked_by.user,
        "action": proposal.action,
        "product": proposal.product,
        "params": proposal.params,
        "digest": proposal.digest,
        "rationale": proposal.rationale,
        "model_blast_radius": proposal.model_blast_radius,
        "blast_radius": proposal.blast_radius,
        "reversible": proposal.reversible,
        "untrusted_read": proposal.untrusted_read,
        "confirm_roles": json_text.dumps(list(proposal.confirm_roles)),
        "four_eyes": proposal.four_eyes,
        "state": proposal.state.value,
        "created_at": proposal.created_at,
        "expires_at": proposal.expires_at,
        "card_ts": proposal.card_ts,
        "decided_by": proposal.decided_by,
        "decided_at": proposal.decided_at,
        "reason": proposal.reason,
        "outcome": proposal.outcome,
        "preview": proposal.preview,
        "objects": proposal.objects,
        "object_names": json_text.dumps(list(proposal.object_names)),
        "fingerprint": proposal.fingerprint,
        "approvals": proposal.approvals,
        "votes": votes_text(proposal.votes),
        "action_roles": json_text.dumps(list(proposal.action_roles)),
        "supersedes": proposal.supersedes,
        "confirm_dialog": proposal.confirm_dialog,
        "card_wanted": 1,
        "channel_name": proposal.channel_name,
    }


def proposal_of(row: sa.Row[Any]) -> Proposal:
    """The proposal of a row."""
    return Proposal(
        id=ProposalId(row.id),
        session_id=SessionId(row.session_id),
        turn_id=TurnId(row.turn_id),
        place=Place(TeamId(row.team), ChannelId(row.channel), MessageTs(row.thread_ts)),
        asked_by=Person(TeamId(row.asker_team), UserId(row.asker_user)),
        action=row.action,
        product=row.product,
        params=row.params,
        digest=row.digest,
        rationale=row.rationale,
        model_blast_radius=row.model_blast_radius,
        blast_radius=row.blast_radius,
        reversible=row.reversible,
        untrusted_read=row.untrusted_read,
        confirm_roles=tuple(json_text.loads(row.confirm_roles)),
        four_eyes=row.four_eyes,
        state=ProposalState(row.state),
        created_at=row.created_at,
        expires_at=row.expires_at,
        card_ts=None if row.card_ts is None else MessageTs(row.card_ts),
        decided_by=None if row.decided_by is None else UserId(row.decided_by),
        decided_at=row.decided_at,
        reason=row.reason,
        outcome=row.outcome,
        preview=row.preview,
        objects=row.objects,
        object_names=tuple(json_text.loads(row.object_names)),
        fingerprint=row.fingerprint,
        approvals=row.approvals,
        votes=_VOTES.validate_json(row.votes),
        action_roles=tuple(json_text.loads(row.action_roles)),
        supersedes=row.supersedes,
        confirm_dialog=row.confirm_dialog,
        channel_name=row.channel_name,
    )
