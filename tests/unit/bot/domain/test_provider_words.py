"""The state of a model backend in one line."""

import pytest

from bot.domain.provider_status import ProviderStatus

LEFT_ALONE = ProviderStatus(
    "anthropic", False, "rate limited, not asked for 12 s", turn=1, circuit="open", wait_s=12
)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (LEFT_ALONE, "not available, rate limited, not asked for 12 s"),
        (ProviderStatus("a", True, turn=1, model="m", answered=True), "ready, asked first, m"),
        (ProviderStatus("a", True, turn=4), "configured, not used yet, asked 4th"),
        (
            ProviderStatus("a", True),
            "configured, but not in default_provider or fallback_providers",
        ),
        (
            ProviderStatus("a", True, turn=2, circuit="trying", answered=True),
            "ready, asked second, on trial after failures",
        ),
    ],
)
def test_a_provider_state_is_one_readable_line(status: ProviderStatus, words: str) -> None:
    assert status.as_words() == words
