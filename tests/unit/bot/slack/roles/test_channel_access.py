"""Access to channels: no more than Slack would show, and none if it does not say."""

import pytest
from pydantic import JsonValue

from bot.domain.ids import Person, TeamId, UserId
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.roles.channel_access import MOST, ChannelAccess, VisibleChannels
from tests.fakes.slack_web_api import Arguments, FakeWebApi

ANNA = Person(TeamId("T1"), UserId("U0ANNA"))
PUBLIC: JsonValue = {"is_channel": True, "is_private": False}
PRIVATE: JsonValue = {"is_channel": True, "is_private": True}


def workspace(kind: JsonValue, members: list[JsonValue], **user: JsonValue) -> FakeWebApi:
    api = FakeWebApi()
    api.answers["conversations.info"] = {"channel": kind}
    api.answers["conversations.members"] = {"members": members}
    api.answers["users.info"] = {"user": {"id": "U0ANNA", "team_id": "T1", **user}}
    return api


async def sees(api: FakeWebApi, channel: str = "C1", viewer: Person = ANNA) -> bool:
    sighted = await ChannelAccess(api, "T1", lambda: 0.0).of(viewer, [channel], {"D1": "U0ANNA"})
    return channel in sighted.seen


@pytest.mark.parametrize(
    ("api", "is_seen"),
    [
        (workspace(PUBLIC, []), True),
        (workspace(PUBLIC, [], is_restricted=True), False),
        (workspace(PUBLIC, ["U0ANNA"], is_restricted=True), True),
        (workspace(PUBLIC, [], is_ultra_restricted=True), False),
        (workspace(PUBLIC, [], is_stranger=True), False),
        (workspace(PUBLIC, [], team_id="T9"), False),
        (workspace(PUBLIC, [], deleted=True), False),
        (workspace(PRIVATE, []), False),
        (workspace(PRIVATE, ["U0BEN"]), False),
        (workspace(PRIVATE, ["U0BEN", "U0ANNA"]), True),
        (workspace({"is_mpim": True, "is_private": True}, ["U0ANNA"]), True),
        (workspace({}, []), False),
    ],
)
async def test_a_channel_is_visible_to_the_people_slack_would_show_it_to(
    api: FakeWebApi, is_seen: bool
) -> None:
    assert await sees(api) is is_seen


async def test_a_partner_sees_a_public_channel_only_as_a_member() -> None:
    partner = Person(TeamId("T9"), UserId("U0ALEX"))
    assert not await sees(workspace(PUBLIC, ["U0ANNA"]), viewer=partner)
    assert await sees(workspace(PUBLIC, ["U0ALEX"]), viewer=partner)


async def test_a_direct_message_is_its_persons_without_a_lookup() -> None:
    api = workspace(PRIVATE, [])
    assert await sees(api, "D1")
    assert not await sees(api, "D1", Person(TeamId("T1"), UserId("U0BEN")))
    assert not await sees(api, "D2")
    assert api.calls == []


@pytest.mark.parametrize(
    ("failure", "unread"),
    [
        (SurfaceFailed("ratelimited", retryable=True), 1),
        ({"ok": True}, 1),
        (SurfaceGone("channel_not_found"), 0),
    ],
)
@pytest.mark.parametrize("method", ["conversations.info", "conversations.members"])
async def test_an_unreadable_channel_is_hidden_and_counted(
    method: str, failure: dict[str, JsonValue] | Exception, unread: int
) -> None:
    api = workspace(PUBLIC, ["U0BEN"])
    api.answers[method] = failure
    sighted = await ChannelAccess(api, "T1", lambda: 0.0).of(ANNA, ["C1"], {})
    assert sighted == VisibleChannels(frozenset(), unread)


async def test_a_members_channel_needs_no_further_lookup() -> None:
    api = workspace(PRIVATE, ["U0ANNA"])
    channel_access = ChannelAccess(api, "T1", lambda: 0.0)
    for _ in range(3):
        assert (await channel_access.of(ANNA, ["C1"], {})).seen == {"C1"}
    assert [method for method, _ in api.calls] == ["conversations.members"]


async def test_an_unreadable_guest_flag_opens_no_public_channel() -> None:
    api = workspace(PUBLIC, [])
    api.answers["users.info"] = SurfaceFailed("user_not_found", retryable=False)
    assert not await sees(api)


async def test_information_about_another_person_grants_nothing() -> None:
    api = workspace(PUBLIC, [], id="U0BEN")
    assert await ChannelAccess(api, "T1", lambda: 0.0).of(ANNA, ["C1"], {}) == VisibleChannels(
        frozenset(), 1
    )


async def test_members_are_read_page_by_page_up_to_a_limit() -> None:
    pages: list[JsonValue] = []

    def page(arguments: Arguments) -> dict[str, JsonValue]:
        pages.append(arguments["cursor"])
        found: list[JsonValue] = ["U0ANNA"] if len(pages) == 3 else [f"U{len(pages)}"]
        return {"members": found, "response_metadata": {"next_cursor": "more"}}

    api = workspace(PRIVATE, [])
    api.answers["conversations.members"] = page
    assert await sees(api)
    assert len(pages) == 5
    assert pages[:2] == [None, "more"]


async def test_a_lookup_of_very_many_channels_says_what_it_omitted() -> None:
    channels = [f"C{n}" for n in range(MOST + 3)]
    sighted = await ChannelAccess(workspace(PUBLIC, []), "T1", lambda: 0.0).of(ANNA, channels, {})
    assert (len(sighted.seen), sighted.unread) == (MOST, 3)
