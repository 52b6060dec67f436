"""Who reads a channel: asked rarely, and unknown where Slack does not say."""

import pytest
from pydantic import JsonValue

from bot.domain.channel import Readers
from bot.domain.ids import ChannelId, MessageTs, Place, TeamId
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.channels import TTL_S, ChannelReaders, Channels, SlackChannelNames
from tests.fakes.channel_names import MemoryNames
from tests.fakes.slack_web_api import FakeWebApi


def place(channel: str) -> Place:
    return Place(TeamId("T1"), ChannelId(channel), MessageTs("1.1"))


def raises(error: Exception) -> object:
    def answer(_arguments: object) -> dict[str, JsonValue]:
        raise error

    return answer


@pytest.mark.parametrize(
    ("channel", "readers"),
    [
        ({"is_ext_shared": False, "is_shared": False}, Readers.OWN),
        ({"is_ext_shared": False, "is_shared": True, "is_org_shared": True}, Readers.OWN),
        ({"is_ext_shared": True, "is_shared": True}, Readers.SHARED),
        ({"is_ext_shared": False, "is_shared": True}, Readers.SHARED),
        ({"is_ext_shared": False, "is_pending_ext_shared": True}, Readers.PENDING),
        ({"is_ext_shared": False, "pending_shared": ["T9"]}, Readers.PENDING),
        ({"name": "general"}, Readers.UNKNOWN),
        ({"is_ext_shared": "maybe"}, Readers.UNKNOWN),
        ("C1", Readers.UNKNOWN),
    ],
)
async def test_a_channel_reports_its_readers(channel: JsonValue, readers: Readers) -> None:
    api = FakeWebApi()
    api.answers["conversations.info"] = {"channel": channel}

    assert await ChannelReaders(Channels(api, lambda: 0.0)).of(place("C1")) is readers


@pytest.mark.parametrize(
    "error",
    [SurfaceFailed("down", retryable=True), SurfaceGone("channel_not_found"), TimeoutError()],
    ids=lambda error: type(error).__name__,
)
async def test_unreadable_readers_are_unknown_and_requested_again(error: Exception) -> None:
    api = FakeWebApi()
    api.answers["conversations.info"] = raises(error)  # type: ignore[assignment]
    readers = ChannelReaders(Channels(api, lambda: 0.0))

    assert await readers.of(place("C1")) is Readers.UNKNOWN
    api.answers["conversations.info"] = {"channel": {"is_ext_shared": False}}
    assert await readers.of(place("C1")) is Readers.OWN


async def test_readers_are_requested_once_in_five_minutes_and_never_for_a_direct_message() -> None:
    api, now = FakeWebApi(), [0.0]
    api.answers["conversations.info"] = {"channel": {"is_ext_shared": False}}
    readers = ChannelReaders(Channels(api, lambda: now[0]))

    assert await readers.of(place("D1")) is Readers.OWN
    assert api.calls == []
    await readers.of(place("C1"))
    now[0] = TTL_S
    await readers.of(place("C1"))
    assert api.count("conversations.info") == 1
    now[0] = TTL_S + 1
    await readers.of(place("C1"))
    assert api.count("conversations.info") == 2


async def test_a_new_channels_name_and_its_readers_are_one_call() -> None:
    api = FakeWebApi()
    api.answers["conversations.info"] = {
        "channel": {"id": "C1", "name": "incident-checkout", "is_ext_shared": False}
    }
    channels = Channels(api, lambda: 0.0)
    names = SlackChannelNames(channels, MemoryNames())

    assert await names.for_asking(place("C1")) == "incident-checkout"
    assert await ChannelReaders(channels).of(place("C1")) is Readers.OWN
    assert api.count("conversations.info") == 1
