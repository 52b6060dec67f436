"""A card warns of a version that was rolled back, and of an edited one that was never deployed."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from bot.actions.versions import VersionCheck
from bot.domain.proposal import Proposal, ProposalState, canonical
from bot.slack.views.cards import CONFIRM_ACTION, card
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
        edited("v2.3.7", supersedes=""),
        edited(state=ProposalState.REJECTED),
    ],
)
async def test_no_other_card_has_the_warning(row: Proposal) -> None:
    assert await warned(row, Records()) == ""


DEPLOYED = Deploy("checkout", "v2.4.0", AT - timedelta(hours=1), previous_version="v2.3.7")
BACK = Deploy("checkout", "v2.3.7", AT, actor="anna", previous_version="v2.4.0")
KUBERNETES = replace(BACK, at=AT - timedelta(minutes=1), actor="", status="rolled_back")
UPGRADE = Deploy("checkout", "v2.5.0", AT, previous_version="v2.4.0")
AGAIN = Deploy("checkout", "v2.4.0", AT + timedelta(minutes=1), previous_version="v2.3.7")
FAILED = replace(AGAIN, status="failed")


def rollback(preview: str = '{"from":"v2.3.7","to":"v2.4.0"}', params: str = "{}") -> Proposal:
    return proposal(params=params, preview=preview)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ((BACK, DEPLOYED), f"v2.4.0 was rolled back at {AT:%H:%M} UTC by anna."),
        ((BACK, KUBERNETES, DEPLOYED), f"v2.4.0 was rolled back at {AT:%H:%M} UTC by anna."),
        ((KUBERNETES,), f"v2.4.0 was rolled back at {KUBERNETES.at:%H:%M} UTC."),
        ((FAILED, BACK, DEPLOYED), f"v2.4.0 was rolled back at {AT:%H:%M} UTC by anna."),
        (
            (
                replace(BACK, at=AT - timedelta(days=2)),
                replace(DEPLOYED, at=AT - timedelta(days=3)),
            ),
            f"v2.4.0 was rolled back at {AT - timedelta(days=2):%Y-%m-%d %H:%M} UTC by anna.",
        ),
        ((replace(BACK, previous_version=""), DEPLOYED), f"v2.4.0 was rolled back at {AT:%H:%M}"),
    ],
    ids=["a rollback", "two sources", "kubernetes", "failed since", "days ago", "no previous"],
)
async def test_a_return_to_a_version_that_was_rolled_back_is_warned_of(
    found: Sequence[Deploy], text: str
) -> None:
    told = await warned(rollback(), Records(found))
    shown = str(card(rollback(), "responder", AT, warning=told).blocks)

    assert told.startswith(text)
    assert "⚠ v2.4.0 was rolled back" in shown
    assert CONFIRM_ACTION in shown


async def test_a_version_parameter_that_was_rolled_back_is_warned_of() -> None:
    row = rollback(preview="", params=canonical({"version": "v2.4.0"}))

    assert "v2.4.0 was rolled back" in await warned(row, Records((BACK, DEPLOYED)))


@pytest.mark.parametrize(
    "found",
    [
        (DEPLOYED,),
        (UPGRADE, DEPLOYED),
        (UPGRADE, replace(UPGRADE, at=AT - timedelta(seconds=20)), DEPLOYED),
        (AGAIN, BACK, DEPLOYED),
        (replace(BACK, status="failed"), DEPLOYED),
        (),
    ],
    ids=["running", "upgraded", "upgrade of two sources", "deployed again", "failed", "none"],
)
async def test_a_version_that_was_not_rolled_back_gets_no_warning(found: Sequence[Deploy]) -> None:
    assert await warned(rollback(), Records(found)) == ""


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
