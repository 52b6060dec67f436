"""The products to check first without an established cause: those that changed with the symptom."""

import pytest

from tests.fixtures_triage import investigate, moved, world

FELT_AT = "2026-04-07T14:15:00Z"
FELT = moved(
    "checkout", "errors", FELT_AT, usual=0.0, worst=0.05, score=3.5, beyond_all_before=False
)


@pytest.mark.parametrize(
    ("since", "until", "named"),
    [
        (FELT_AT, None, True),
        ("2026-04-07T14:17:00Z", None, True),
        ("2026-04-07T14:06:00Z", None, False),
        (FELT_AT, "2026-04-07T14:25:00Z", False),
    ],
    ids=["at once", "minutes later", "long before", "over while it goes on"],
)
async def test_a_small_record_that_starts_with_the_complaint_is_named(
    since: str, until: str | None, named: bool
) -> None:
    own = moved("cart", "cpu", since, usual=0.04, worst=0.14, score=5.0, until=until, requests=5)
    found = await investigate(world([FELT, own]), "what is wrong?")

    assert ("I would look first at cart" in found.text) is named
