"""A pressed button or menu as a value: who, where, on which message."""

import json
from dataclasses import asdict, dataclass

from pydantic import TypeAdapter, ValidationError

from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.slack.ingress.payloads import BlockActions, Container, SlackIdentity, ViewSubmission


@dataclass(frozen=True, slots=True)
class Click:
    """One press. `action_ts` distinguishes two presses of one person."""

    person: Person
    place: Place
    message_ts: MessageTs
    action_id: str
    action_ts: str
    value: str
    trigger_id: str = ""
    in_modal: bool = False


def click_of(payload: BlockActions, identity: SlackIdentity) -> Click:
    """The click in a payload. The thread comes from the message; a direct message has none.

    One in a modal is of the place in which that was opened.
    """
    container, action = payload.container, payload.actions[0]
    kept = _kept(payload.view.private_metadata) if payload.view else None
    if kept is not None:
        container = Container(
            channel_id=kept.channel,
            message_ts=kept.message_ts,
            thread_ts=kept.thread_ts or None,
        )
    snapshot = payload.message.thread_ts if payload.message else None
    own_thread = "" if container.channel_id.startswith("D") else container.message_ts
    return Click(
        person=_person(payload),
        place=Place(
            identity.team,
            ChannelId(container.channel_id),
            MessageTs(container.thread_ts or snapshot or own_thread),
        ),
        message_ts=MessageTs(container.message_ts),
        action_id=action.action_id,
        action_ts=action.action_ts,
        value=action.chosen,
        trigger_id=payload.trigger_id,
        in_modal=kept is not None,
    )


def _person(payload: BlockActions | ViewSubmission) -> Person:
    user = payload.user
    return Person(TeamId(user.team_id or installed_team(payload)), UserId(user.id))


def installed_team(payload: BlockActions | ViewSubmission) -> str:
    """The app's workspace, which a payload names apart from the person's own."""
    return payload.team.id if payload.team else payload.user.team_id or ""


@dataclass(frozen=True, slots=True)
class _Remembered:
    proposal: str
    channel: str
    thread_ts: str
    message_ts: str
    action_ts: str


_REMEMBERED = TypeAdapter(_Remembered)


def remember(click: Click) -> str:
    """What a modal carries of the click that opened it (`private_metadata`, 3,000 at most)."""
    place = click.place
    kept = _Remembered(
        click.value, place.channel, place.thread_ts, click.message_ts, click.action_ts
    )
    return json.dumps(asdict(kept))


def _kept(metadata: str) -> _Remembered | None:
    try:
        return _REMEMBERED.validate_json(metadata)
    except ValidationError:
        return None


def recall(payload: ViewSubmission, identity: SlackIdentity) -> Click | None:
    """The press that opened the modal, now by the person who submitted it; None if it is not ours."""
    kept = _kept(payload.view.private_metadata)
    if kept is None:
        return None
    return Click(
        person=_person(payload),
        place=Place(identity.team, ChannelId(kept.channel), MessageTs(kept.thread_ts)),
        message_ts=MessageTs(kept.message_ts),
        action_id=payload.view.callback_id,
        action_ts=kept.action_ts,
        value=kept.proposal,
    )
