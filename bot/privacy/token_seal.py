"""Tokens sealed for the database by Fernet (https://github.com/fernet/spec), each for its own
workspace.

A sealed token contains its workspace: in another workspace's row it does not open.
"""

import json
from collections.abc import Sequence

EXTRA = "needs the extra kortex[workspaces]; run `make setup-workspaces`"


class SealUnavailable(Exception):
    pass


class SealBroken(Exception):
    """Sealed with a key that is not known here, changed since, or another workspace's."""


class TokenSeal:
    """`keys`, at least one: the first seals, all of them open. Raises SealUnavailable."""

    def __init__(self, keys: Sequence[str]) -> None:
        try:
            from cryptography.fernet import Fernet, InvalidToken, MultiFernet  # an extra
        except ImportError as error:
            raise SealUnavailable(EXTRA) from error
        self._first = Fernet(keys[0])
        self._all = MultiFernet([Fernet(key) for key in keys])
        self._invalid = InvalidToken

    def seal(self, team: str, token: str) -> str:
        """Differs each time."""
        return self._all.encrypt(json.dumps([team, token]).encode()).decode()

    def opened(self, team: str, sealed: str) -> str:
        """The token. Raises SealBroken."""
        try:
            found = json.loads(self._all.decrypt(sealed.encode()))
        except (self._invalid, ValueError) as error:
            raise SealBroken(f"none of the keys opens the token of {team}") from error
        match found:
            case [str() as whose, str() as token] if whose == team:
                return token
            case _:
                raise SealBroken(f"the stored token of {team} belongs to another workspace")

    def renewed(self, sealed: str) -> str | None:
        """Sealed again if another key than the first sealed it; else None, also if no key opens it."""
        try:
            self._first.decrypt(sealed.encode())
        except (self._invalid, ValueError):
            pass
        else:
            return None
        try:
            return self._all.rotate(sealed.encode()).decode()
        except (self._invalid, ValueError):
            return None
