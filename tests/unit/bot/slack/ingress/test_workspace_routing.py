"""Each delivery goes to the app of its workspace, with any other content."""

import asyncio
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_bolt.response import BoltResponse

from bot.domain.ids import TeamId
from bot.ports.failures import StorageUnavailable
from bot.slack.ingress import workspace_routing
from bot.slack.ingress.workspace_routing import TeamApps, addressed_team


@pytest.mark.parametrize(
    ("body", "team"),
    [
        ({"team_id": "T1", "authorizations": [{"team_id": "T2"}]}, "T2"),  # Slack Connect
        ({"team_id": "T1", "authorizations": []}, "T1"),
        ({"team": {"id": "T1"}, "user": {"team_id": "T2"}}, "T1"),
        ({"team": {"id": ""}, "user": {"team_id": "T2"}}, ""),
        ({"team": None, "user": {"team_id": "T2"}}, "T2"),
        ({"team_id": "T1", "user_id": "U1", "command": "/kortex"}, "T1"),
        ({"authorizations": "T1", "team_id": ["T1"], "team": 7}, ""),
        ({}, ""),
    ],
)
def test_the_workspace_is_the_one_with_the_apps_installation(
    body: dict[str, object], team: str
) -> None:
    assert addressed_team(body) == team


JSON = st.recursive(
    st.none() | st.text(max_size=5) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2)
    ),
    max_leaves=6,
)


@settings(max_examples=50)
@given(found=st.dictionaries(st.sampled_from(["team", "team_id", "user", "authorizations"]), JSON))
def test_any_body_gives_a_team_as_text(found: dict[str, object]) -> None:
    assert isinstance(addressed_team(found), str)


class App:
    """A Bolt app that only counts."""

    def __init__(self) -> None:
        self.taken = 0

    async def async_dispatch(self, req: AsyncBoltRequest) -> BoltResponse:
        self.taken += req is not None
        return BoltResponse(status=200)


def _sent(**body: Any) -> AsyncBoltRequest:
    return AsyncBoltRequest(mode="socket_mode", body=body)


async def test_a_delivery_for_an_unknown_workspace_goes_to_the_home_app() -> None:
    home, other = App(), App()
    waited: list[float] = []

    async def app_of(team: TeamId) -> AsyncApp | None:
        return cast("AsyncApp", other) if team == "T2" else None

    apps = TeamApps(cast("AsyncApp", home), app_of, waited.append)
    for team in ("T2", "T1", "T3", ""):
        assert (await apps.async_dispatch(_sent(team_id=team))).status == 200
    assert (home.taken, other.taken) == (3, 1)
    assert len(waited) == 4


@pytest.mark.parametrize("slow", [True, False])
async def test_a_delivery_for_a_workspace_not_yet_known_is_redelivered(
    slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_routing, "_LOOK_UP_S", 0.01)
    home = App()
    waited: list[float] = []

    async def app_of(_team: TeamId) -> AsyncApp | None:
        await asyncio.sleep(60 if slow else 0)
        raise StorageUnavailable("the database is away")

    apps = TeamApps(cast("AsyncApp", home), app_of, waited.append)
    assert (await apps.async_dispatch(_sent(team_id="T2"))).status == 503
    assert (home.taken, len(waited)) == (0, 1)
