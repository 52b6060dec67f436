"""The rows of workspaces that install the app, and what seals their tokens."""

from bot.privacy.token_seal import SealUnavailable, TokenSeal
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.store.database import Database
from bot.store.installations import StoredInstallations


async def open_installations(settings: Settings, database: Database) -> StoredInstallations | None:
    """None without `[slack] client_id`. What an older key sealed is sealed by the first one.

    Raises ConfigurationError without the extra, StorageUnavailable.
    """
    if not settings.slack.client_id:
        return None
    try:
        seal = TokenSeal(settings.slack.seal_keys)
    except SealUnavailable as error:
        raise ConfigurationError(f"slack.client_id: {error}") from error
    installations = StoredInstallations(database, seal)
    await installations.reseal()
    return installations
