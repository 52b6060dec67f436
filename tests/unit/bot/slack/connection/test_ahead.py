"""What is taken in ahead of Slack's framework, what is left to it, and what Slack is told of either."""

import asyncio
from dataclasses import dataclass, field

import pytest
from pydantic import JsonValue
from slack_bolt.async_app import AsyncBoltRequest
from slack_bolt.response import BoltResponse

from bot.domain.ids import TeamId
from bot.ports.failures import StorageUnavailable
from bot.ports.loops import OtherLoop
from bot.slack.connection.ahead import Ahead
from bot.slack.received.payloads import MessageEnvelope, SessionStopped
from tests.slack_ingress import TEAM, event, mention, pressed, said

Payload = dict[str, JsonValue]


@dataclass
class Messages:
    """Takes every message, unless it has an error to raise."""

    error: BaseException | None = None
    taken: list[tuple[str, int]] = field(default_factory=list)

    async def take(self, envelope: MessageEnvelope, retry: int) -> None:
        if self.error is not None:
            raise self.error
        self.taken.append((envelope.event.type, retry))

    async def stopped(self, envelope: SessionStopped) -> None:
        raise AssertionError(f"not heard of here: {envelope.event_id}")


class Rest:
    """Bolt, which answers all it gets."""

    async def async_dispatch(self, req: AsyncBoltRequest) -> BoltResponse:
        return BoltResponse(status=202, body=str(req.body["type"]))


async def answered(messages: Messages, body: Payload, retry: int = 0) -> tuple[int, int]:
    """The status, and how many waits were counted."""
    waits: list[float] = []
    here = OtherLoop(asyncio.get_running_loop())
    open_here = {TeamId(TEAM): messages}
    ahead = Ahead(open_here.get, Rest(), here, 0.01, waits.append)
    headers = {"x-slack-retry-num": str(retry)}
    request = AsyncBoltRequest(mode="socket_mode", body=body, headers=dict(headers))
    return (await ahead.async_dispatch(request)).status, len(waits)


@pytest.mark.parametrize("body", [mention(), event(said("why?"))])
async def test_what_people_write_is_taken_in(body: Payload) -> None:
    messages = Messages()
    assert await answered(messages, body, retry=2) == (200, 1)
    assert [retry for _, retry in messages.taken] == [2]


ELSEWHERE: Payload = mention() | {"authorizations": [{"team_id": "T9"}]}
UNREAD: Payload = event({"type": "reaction_added"})


@pytest.mark.parametrize("body", [pressed("turn:stop", "t"), UNREAD, ELSEWHERE])
async def test_what_is_no_message_or_not_of_here_is_left_to_the_framework(body: Payload) -> None:
    messages = Messages()
    assert await answered(messages, body) == (202, 0)
    assert messages.taken == []


@pytest.mark.parametrize("error", [StorageUnavailable("gone"), TimeoutError(), KeyError("a bug")])
async def test_what_was_not_taken_has_to_be_delivered_again(error: Exception) -> None:
    assert await answered(Messages(error), mention()) == (500, 1)


async def test_a_message_that_cannot_be_read_is_not_asked_for_again() -> None:
    messages = Messages()
    assert await answered(messages, event({"type": "message", "ts": ["1"]})) == (200, 1)
    assert messages.taken == []
