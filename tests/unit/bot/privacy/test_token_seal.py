"""Without its library nothing is sealed, and that is said with the extra that brings it."""

import sys
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from bot.app.stores import open_installations
from bot.privacy.token_seal import SealBroken, TokenSeal
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.store.database import Database

KEY = Fernet.generate_key().decode()
SETTINGS = Settings.model_validate(
    {"slack": {"client_id": "1.2", "client_secret": "s", "token_keys": [KEY]}}
)


async def test_a_missing_library_is_named_by_its_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.fernet", None)
    database = await Database.open(f"sqlite+aiosqlite:///{tmp_path}/k.db")
    with pytest.raises(ConfigurationError, match=r"slack\.client_id: .*kortex\[workspaces\]"):
        await open_installations(SETTINGS, database)
    assert await open_installations(Settings(), database) is None
    await database.close()


@pytest.mark.parametrize("sealed", ["", "xoxb-1", "é" * 50, "(" * 1_500, "\x00", "gAAAAA=="])
def test_an_unsealed_value_is_broken_and_unchanged(sealed: str) -> None:
    seal = TokenSeal([KEY])
    with pytest.raises(SealBroken) as broken:
        seal.opened("T1", sealed)
    assert sealed == "" or sealed not in str(broken.value)
    assert seal.renewed(sealed) is None
