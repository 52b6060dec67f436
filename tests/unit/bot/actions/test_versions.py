"""An edited version that was never deployed is warned of, and only then."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from bot.actions.versions import VersionCheck
from bot.domain.proposal import Proposal, ProposalState, canonical
from bot.slack.views.cards import card
from tests.golden.slack_views import AT, proposal
from tools.capabilities import Deploy, Interval
from tools.errors import CapabilityUnavailable

RECORDS = (Deploy("checkout", "v2.4.0", AT, previous_version="v2.3.7"),)


@dataclass
class Records:
    """Deploy records that answer, fail or never answer."""

    found: Sequence[Deploy] = RECORDS
    error: Exception | None = None
    held: asyncio.Event = field(default_factory=asyncio.Event)
    is_slow: bool = False

    async def between(self, product: str, interval: Interval) -> Sequence[Deploy]:
        if self.is_slow:
            await self.held.wait()
        if self.error is not None:
            raise self.error
        return [d for d in self.found if d.product == product and interval.start <= d.at]


def edited(version: object = "v9.9.9", **changes: object) -> Proposal:
    row = proposal(params=canonical({"version": version}), supersedes="prop_01JC")  # type: ignore[dict-item]
    return replace(row, **changes)  # type: ignore[arg-type]


async def warned(row: Proposal, records: Records | None) -> str:
    return await VersionCheck(lambda _row: records).warning(row)


async def test_an_unrecorded_version_is_warned_of_on_the_card() -> None:
    told = await warned(edited(), Records())
    shown = str(card(edited(), "responder", AT, warning=told).blocks)

    assert told.startswith("Version v9.9.9 was not deployed to checkout")
    assert "⚠ Version" in shown


@pytest.mark.parametrize("name", ["target_version", "to-version", "Version", "toVersion"])
async def test_a_version_is_looked_up_by_each_name_of_its_parameter(name: str) -> None:
    params = canonical({"reason": "latency", name: "v2.4.1"})

    assert "v2.4.1 was not deployed" in await warned(edited(params=params), Records())


@pytest.mark.parametrize(
    "row",
    [
        edited("v2.4.0"),
        edited(params=canonical({"conversion": "v9", "version_policy": "v9", "version": None})),
        edited("v2.3.7"),
        edited(7),
        edited(product="other"),
        edited(supersedes=""),
        edited(state=ProposalState.REJECTED),
    ],
)
async def test_no_other_card_has_the_warning(row: Proposal) -> None:
    assert await warned(row, Records()) == ""


async def test_without_records_a_version_gets_no_warning() -> None:
    assert await warned(edited(), None) == ""
    assert await warned(edited(), Records(found=())) == ""


@pytest.mark.parametrize(
    "records", [Records(error=CapabilityUnavailable("down")), Records(is_slow=True)]
)
async def test_failing_or_hanging_records_are_reported_as_unread(records: Records) -> None:
    assert "could not read the deploy history" in await warned(edited(), records)


async def test_a_hostile_version_mentions_no_one_and_hides_no_link() -> None:
    told = await warned(edited("<!channel> [l](https://evil.test) \u202e"), Records())
    shown = str(card(edited(), "responder", AT, warning=told).blocks[3])

    assert "<!channel>" not in shown
    assert "](" not in shown
    assert "\u202e" not in shown
