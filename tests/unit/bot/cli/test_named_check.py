"""`kortex check` asks every backend by its name, and says what each channel looks at."""

from contextlib import AsyncExitStack

import pytest

from bot.app.operator_tools import policy_of
from bot.cli.check.installation import InstallationProbe, made
from bot.cli.check.observe import check_observed
from bot.cli.check.tools import check_channels
from bot.settings.model import Settings

NONE = "none ([observe.errors] itself has none, only those by name)"
AWAY = "http://127.0.0.1:9"
SETTINGS = Settings.model_validate(
    {
        "observe": {
            "logs": {
                "eu": {"kind": "loki", "url": AWAY, "products": ["shop"]},
                "us": {"kind": "loki", "url": AWAY, "products": ["us-shop"]},
            },
            "traces": {"kind": "tempo", "url": AWAY, "eu": {"kind": "tempo", "url": AWAY}},
            "errors": {"eu": {"kind": "sentry", "url": AWAY, "organization": "acme"}},
        },
        "channels": [
            {"match": "eu", "products": ["shop"]},
            {"match": "any"},
            {"match": "both", "products": ["shop", "us-shop"]},
        ],
    }
)


async def test_each_named_backend_is_checked(request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("_nothing_blocks_the_loop").deactivate()
    async with AsyncExitStack() as stack:
        of = await made(SETTINGS, stack)
        found = await check_observed(InstallationProbe(of, None, None))  # type: ignore[arg-type]

    assert sorted(each.part for each in found if each.fails) == [
        "errors eu", "logs eu", "logs us", "traces", "traces eu",
    ]  # fmt: skip


def test_each_channel_lists_its_backends() -> None:
    own, anything, both = check_channels(SETTINGS, policy_of(SETTINGS, ()), ())

    assert own.ok
    assert own.detail.endswith(f"looks at logs eu, traces default, errors {NONE}")
    assert anything.detail.endswith(
        "looks at logs none ([observe.logs] itself has none, only those by name), traces default, "
        f"errors {NONE}"
    )
    assert both.warning
    assert "logs none (the channel's products are of several logs backends (eu, us)" in both.detail
