"""Checks of personal data: checksums, prefixes and lengths that random values rarely have.

A check gets the text before the value on its line (for rules with `before`) and the value.
"""

import hashlib
import re
from typing import Final

from bot.privacy.lists import read_list

_BECH32: Final = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
# A digit doubled, its digits added up, as Luhn's sum takes every second one.
_DOUBLED: Final = bytes.maketrans(b"0123456789", b"0246813579")
_DATE = re.compile(r"(?:19|20)\d\d[ .-][01]?\d[ .-]")
_EPOCH = re.compile(r"1[5-9]\d{8}(?:\d{3})?")  # seconds or milliseconds of these years
_CARD_WORD = re.compile(
    r"(?i)card|visa|amex|discover|diners|jcb|maestro|\bpan\b|\bcc\b|credit|debit|\bpa(?:y|id)|charge|\bbill"
)
_PHONE_WORD = re.compile(
    r"(?i)phone|\btel\b|telephone|mobile|\bcell|\bcall|dial|\bfax|\bsms|\btext|\bring|contact|reach|whatsapp"
    r"|hotline|desk|\b(?:my|his|her|our|your)\b[^:=]{0,16}number"
)
_PART_WORD = re.compile(
    r"(?i)(?:part|sku|serial|model|isbn|range|ports?|batch|build|version|release|ticket|invoice|case|ref)\b"
    r"(?:[ _-]?(?:no|number|id))?[\s.:#=\"']*$"
)
# A name with `=` or `:`, a metric's name, a figure in a row of them, or the counted noun.
_NUMBERED = re.compile(
    r"(?i)(?:[\w.\]})-]+[\"']?\s?[=:]\s?[\"']?|\b\w+_\w+\s+|[\d.}%]\s?[\s,;|/]\s?"
    r"|\b[\w-]*(?:ids?|n[or]|number|order|req(?:uest)?|trace|span|seq|sequence|offset|message|msg|event|job|run|task"
    r"|process|pid|thread|session|user|tenant|customer|account|object|chunk|block|page|row|record|shipment"
    r"|tracking|node|volume|inode|lsn|xid|txid|transaction|txn|key|hash|mem|memory|heap|bytes|size|total|count|counter"
    r"|limit|value|sum|rate|took|at|since|timestamp|ts|time|epoch|nanos|snapshot|revision|rev|generation"
    r"|partition|cursor|index|position|max|min|avg|used|free|capacity|allocated|sent|received|read|written|rx|tx"
    r"|device|entity|item|product|latency|p\d\d|sku|serial|build|version|batch|ticket|invoice)[\s#(\[]{1,3})$"
)
_NOT_DIGITS: Final = str.maketrans("", "", " -.")
_AS_NUMBERS: Final = {ord(c): str(int(c, 36)) for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_IBAN_LENGTHS: Final = {
    country: int(length)
    for length, countries in dict(read_list("iban_lengths")).items()
    for country in countries.split()
}


def card(before: str, value: str) -> bool:
    """A scheme's prefix and length, and Luhn's checksum.

    Every tenth number passes that: one without groups is a card unless something else is named.
    """
    if value.isdigit() and is_number_of_something(before) and not _CARD_WORD.search(before):
        return False
    digits = value.translate(_NOT_DIGITS)
    if not _scheme(digits) or (value.isdigit() and _is_instant(digits)) or len(set(digits)) <= 1:
        return False
    raw = digits.encode()
    total = sum(raw[-1::-2]) + sum(raw[-2::-2].translate(_DOUBLED)) - len(raw) * ord("0")
    return total % 10 == 0


def _scheme(digits: str) -> bool:
    size, two, four = len(digits), int(digits[:2]), int(digits[:4])
    return (
        (digits[0] == "4" and size in (13, 16, 19))
        or ((51 <= two <= 55 or 2221 <= four <= 2720) and size == 16)
        or (two in (34, 37) and size == 15)
        or ((two in (36, 38, 39) or 300 <= int(digits[:3]) <= 305) and size in (14, 16))
        or ((four == 6011 or two in (64, 65, 62, 81)) and size in (16, 17, 18, 19))
        or (3528 <= four <= 3589 and size == 16)
        or ((two in (50, 60) or 56 <= two <= 69) and size in (13, 15, 16, 18, 19))
    )


def is_number_of_something(before: str) -> bool:
    """Whether the text before a number shows that it counts or names a thing."""
    return _NUMBERED.search(before) is not None


def _is_instant(digits: str) -> bool:
    return len(digits) in (13, 16, 19) and digits.startswith(("15", "16", "17", "18", "19", "20"))


def iban(_: str, value: str) -> bool:
    """ISO 13616: the country's length, then mod 97."""
    compact = value.translate(_NOT_DIGITS)
    length = _IBAN_LENGTHS.get(compact[:2], 0)
    if not length or len(compact) < length:
        return False
    return int((compact[4:length] + compact[:4]).translate(_AS_NUMBERS)) % 97 == 1


def us_ssn(before: str, value: str) -> bool:
    area, group, serial = re.split(r"[-. ]", value)
    if _PART_WORD.search(before) or ("-" not in value and is_number_of_something(before)):
        return False
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"


def email(_: str, value: str) -> bool:
    """An address of a person, not a unit, a clone URL or a host inside the cluster."""
    local, _, domain = value.replace("%40", "@").rpartition("@")
    top = domain.rpartition(".")[2].lower()
    if top in (
        "service",
        "socket",
        "target",
        "mount",
        "timer",
        "slice",
        "scope",
        "device",
        "path",
        "local",
        "internal",
        "svc",
        "cluster",
        "localdomain",
        "lan",
        "conf",
        "json",
        "yaml",
        "yml",
        "toml",
        "png",
        "jpg",
        "svg",
        "js",
        "ts",
        "py",
        "go",
        "css",
        "html",
        "txt",
        "log",
    ):
        return False  # fmt: skip
    return local.lower() not in ("git", "hg", "svn") and ".." not in value


def phone(before: str, value: str) -> bool:
    """Ten to fifteen digits. Bare groups of North America's 3-3-4 are a number only where one is due.

    Groups with spaces are columns of figures as often; an exchange begins with 2 to 9 (NANP).
    """
    digits = re.sub(r"\D", "", value)
    if value[0].isdigit() and not _PHONE_WORD.search(before):
        is_figures = " " in value or digits[-7] in "01"
        if is_figures or _PART_WORD.search(before) or is_number_of_something(before):
            return False
    return (9 if value.startswith("+") else 10) <= len(digits) <= 15


def phone_named(_: str, value: str) -> bool:
    """After a word such as `tel`: a national number may be shorter; a date does not count."""
    digits = re.sub(r"\D", "", value)
    if _DATE.match(value) or _EPOCH.fullmatch(value):
        return False
    return (9 if value.startswith("+") else 10) <= len(digits) <= 15 or len(digits) == 9


def base58check(_: str, value: str) -> bool:
    """A payload of 21 bytes and four of its double SHA-256."""
    number = 0
    for c in value:
        number = number * 58 + _BASE58.index(c)
    try:
        raw = number.to_bytes(25, "big")
    except OverflowError:
        return False
    return hashlib.sha256(hashlib.sha256(raw[:21]).digest()).digest()[:4] == raw[21:]


def bech32(_: str, value: str) -> bool:
    """BIP 173 and BIP 350."""
    text = value.lower()
    if value not in (text, value.upper()):
        return False
    values = [3, 3, 0, 2, 3, *(_BECH32.index(c) for c in text[3:])]
    state = 1
    for v in values:
        top = state >> 25
        state = (state & 0x1FFFFFF) << 5 ^ v
        for i, g in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            state ^= g if top >> i & 1 else 0
    return state in (1, 0x2BC830A3)
