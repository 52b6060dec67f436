"""The times that commands take: `--since 24h`, `--until 2026-11-21`."""

from datetime import UTC, datetime, timedelta

from bot.settings.reading import ConfigurationError
from bot.settings.section import duration


def instant_option(option: str, text: str) -> datetime:
    """`24h` ago, or an ISO date or time, UTC unless it says otherwise. Raises ConfigurationError."""
    try:
        ago = duration(text)
        if isinstance(ago, timedelta):
            return datetime.now(UTC) - ago
    except ValueError:
        pass
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(
            f'{option} {text}: write "24h", "2026-11-21" or "2026-11-21T14:00:00+00:00"'
        ) from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
