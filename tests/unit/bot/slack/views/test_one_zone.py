"""Times that people read side by side are in one zone, and it is named."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from bot.actions.catalog import ActionCatalog
from bot.actions.freeze import FreezeJudge
from bot.domain.freeze import FreezeWindow
from tests.fakes.freezes import FakeSwitch
from tests.zones import zones_in

GOLDEN = Path(__file__).parents[4] / "golden" / "blocks"
RENDERED = sorted(GOLDEN.glob("*.json"))


@pytest.mark.parametrize("path", RENDERED, ids=lambda path: path.stem)
def test_slack_texts_use_utc_unless_a_zone_is_named(path: Path) -> None:
    assert zones_in(path.read_text(encoding="utf-8")) <= {"UTC"}


def test_the_rendered_blocks_contain_times() -> None:
    assert zones_in("".join(each.read_text(encoding="utf-8") for each in RENDERED)) == {"UTC"}


@pytest.mark.parametrize(
    ("text", "zones"),
    [
        ("since 15:02 CET, 14:02 UTC", {"CET", "UTC"}),
        ("2026-11-28T14:02:05Z and 14:02+01:00", {"Z", "+01:00"}),
        ("<!date^1392734382^{time}|14:39>", {"<!date"}),
        ("between 14:02 and 14:10 UTC, 5:1 ratio", {"UTC"}),
    ],
)
def test_another_zone_is_found_in_a_text(text: str, zones: set[str]) -> None:
    assert zones_in(text) == zones


BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 27, 18, 30, tzinfo=UTC)


async def test_a_freeze_is_shown_in_the_zone_of_the_answer() -> None:
    window = FreezeWindow(NOW - timedelta(hours=1), datetime(2026, 11, 30, 8, tzinfo=BERLIN))

    switch = FakeSwitch()
    switch.now = NOW

    told = await FreezeJudge(switch, ActionCatalog([]), [window]).refusal("restart", "checkout")

    assert told == "it is frozen until 2026-11-30 07:00 UTC"
