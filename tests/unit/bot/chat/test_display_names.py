"""Names for a model and its answer: looked up briefly, with ids for unknown ones."""

import asyncio

import pytest

from bot.chat import display_names
from bot.chat.display_names import NamesAt
from bot.domain.ids import ALERTS, ChannelId, MessageTs, Place, TeamId, UserId
from bot.ports.failures import StorageUnavailable

PLACE = Place(TeamId("T1"), ChannelId("C1"), MessageTs("1.1"))


async def test_people_have_their_names_or_their_ids_when_unknown() -> None:
    names = {
        "U1": "Mira *Okafor*",
        "U2": "somebody",
        "U3": "U3",
        "U4": "🔥",
        "@person/noor": "noor",
    }

    async def name_at(place: Place, user: UserId) -> str:
        assert place == PLACE
        return names[user]

    assert await NamesAt(name_at)(PLACE, [*names, "U1", ALERTS]) == {
        "U1": "Mira Okafor", "U2": "U2", "U3": "U3", "U4": "U4", "@person/noor": "noor", ALERTS: ALERTS,
    }  # fmt: skip


async def test_name_lookups_have_a_short_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display_names, "NAMES_S", 0.01)

    async def name_at(_: Place, user: UserId) -> str:
        if user == "U1":
            await asyncio.Event().wait()
        if user == "U2":
            raise StorageUnavailable("gone")
        return "noor"

    assert await NamesAt(name_at)(PLACE, ["U1", "U2", "U3"]) == {
        "U1": "U1",
        "U2": "U2",
        "U3": "noor",
    }
