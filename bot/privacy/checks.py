"""The checks that the data files name."""

from collections.abc import Callable, Mapping
from typing import Final

from bot.privacy import checksums, looks

Check = Callable[[str, str], bool]

CHECKS: Final[Mapping[str, Check]] = {
    check.__name__: check
    for check in (
        looks.random, looks.assigned_quoted, looks.assigned_plain, looks.spoken, looks.header_value, looks.artifactory, looks.vendor_value,
        looks.base64_pair, checksums.card, checksums.iban, checksums.us_ssn, checksums.email,
        checksums.phone, checksums.phone_named, checksums.base58check, checksums.bech32,
    )
}  # fmt: skip
