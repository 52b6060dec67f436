"""The plain text in a foreign tool's arguments, after undoing its encodings.

Percent, HTML and backslash escapes, Base64, Base32 and hexadecimal, also of text packed by gzip,
zlib, bzip2 or xz, one within another. The work is bounded: deeper or larger data cannot be read.
"""

import base64
import binascii
import bz2
import lzma
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterator
from typing import Final, Protocol
from urllib.parse import unquote

_DEPTH: Final = 6
_MOST_TEXTS: Final = 200
_MOST_UNPACKED_BYTES: Final = 256 * 1024
_MOST_PACKED: Final = 4  # layers of one piece

_PERCENT: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_ENTITY: Final = re.compile(
    r"&(?:#[xX]([0-9A-Fa-f]{1,6})|#([0-9]{1,7})|(quot|apos|equals|amp|lt|gt));?"
)
_NAMED_ENTITIES: Final = {
    "quot": '"', "apos": "'", "equals": "=", "amp": "&", "lt": "<", "gt": ">",
}  # fmt: skip
_ESCAPE: Final = re.compile(
    r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|u\{0{0,4}([0-9A-Fa-f]{1,4})\}|U0{4}([0-9A-Fa-f]{4}))"
)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}")
_BASE32: Final = re.compile(r"[A-Z2-7]{16,}={0,6}")
_HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2}){8,}")
_LINE_BREAK: Final = re.compile(r"(?<=[A-Za-z0-9+/_-])\r?\n(?=[A-Za-z0-9+/_=-])")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_INVISIBLE: Final = re.compile(  # https://unicode.org/reports/tr44/#Default_Ignorable_Code_Point
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Letters that look like ASCII ones: https://www.unicode.org/Public/security/latest/confusables.txt
LOOK_ALIKES: Final = str.maketrans(
    "аеорсухіјѕԁһԛԝӏктмАВЕЅКМНОРСТУХІЈΑΒΕΖΗΙΚΜΝΟΡΤΥΧαεικνορτυχςϲοօսոıɑɡᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ",
    "aeopcyxijsdhqwlktmABESKMHOPCTYXIJABEZHIKMNOPTYXaeikvoptuxccoouniagabcdefghijklmnoprstuvwyz",
)
_WORD: Final = re.compile(r"\w+")
_NOT_READ: Final = b"\x28\xb5\x2f\xfd"  # Zstandard, which the standard library does not read


class _Unpacker(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


_PACKED: Final[tuple[tuple[bytes, Callable[[], _Unpacker]], ...]] = (
    (b"\x1f\x8b\x08", lambda: zlib.decompressobj(zlib.MAX_WBITS | 16)),
    (b"\x78\x01", zlib.decompressobj),
    (b"\x78\x5e", zlib.decompressobj),
    (b"\x78\x9c", zlib.decompressobj),
    (b"\x78\xda", zlib.decompressobj),
    (b"BZh", bz2.BZ2Decompressor),
    (b"\xfd7zXZ\x00", lzma.LZMADecompressor),
)


def readings(text: str) -> Iterator[str | None]:
    """The text and all its hidden texts; None for packed data that cannot be read."""
    seen: set[str] = set()
    left = [(plain_text(text), 0)]
    while left:
        each, depth = left.pop()
        if each in seen:
            continue
        if depth > _DEPTH or len(seen) == _MOST_TEXTS:
            yield None
            return
        seen.add(each)
        yield each
        for inner in _inside(each):
            if inner is None:
                yield None
            else:
                left.append((plain_text(inner), depth + 1))


def plain_text(text: str) -> str:
    """The text in compatible characters, without those that cannot be seen.

    A word of look-alikes is written in ASCII; any other word keeps its letters.
    """
    if text.isascii():
        return text
    return _WORD.sub(_as_seen, _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)))


def _as_seen(word: re.Match[str]) -> str:
    seen = word[0].translate(LOOK_ALIKES)
    return seen if seen.isascii() else word[0]


def _inside(text: str) -> Iterator[str | None]:
    if _PERCENT.search(text):
        yield unquote(text)
    if _ENTITY.search(text):
        yield _ENTITY.sub(_entity, text)
    if _ESCAPE.search(text):
        yield _ESCAPE.sub(lambda found: chr(int(found[found.lastindex or 1], 16)), text)
    whole = _LINE_BREAK.sub("", text)
    for pattern, decode in ((_BASE64, _base64), (_BASE32, _base32), (_HEX, binascii.unhexlify)):
        for found in pattern.finditer(whole):
            yield from _text_of(found[0], decode)


def _entity(found: re.Match[str]) -> str:
    if found[3]:
        return _NAMED_ENTITIES[found[3]]
    code = int(found[1], 16) if found[1] else int(found[2])
    return chr(code) if code < 0x110000 else "?"


def _base64(written: str) -> bytes:
    plain = written.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(plain + "=" * (-len(plain) % 4))


def _base32(written: str) -> bytes:
    plain = written.rstrip("=")
    return base64.b32decode(plain + "=" * (-len(plain) % 8))


def _text_of(written: str, decode: Callable[[str], bytes]) -> Iterator[str | None]:
    try:
        data = decode(written)
    except (binascii.Error, ValueError):
        return
    for _ in range(_MOST_PACKED):
        is_packed = data.startswith((_NOT_READ, *(magic for magic, _unpack in _PACKED)))
        if not is_packed:
            break
        unpacked = _unpacked(data)
        if unpacked is None:
            # Other data begins with zlib's two bytes as well, and is not unpacked.
            yield from () if data[:1] == b"\x78" else (None,)
            return
        data = unpacked
    else:
        yield None
        return
    text = _as_text(data)
    if text is None:
        text = _as_text(_deflated(data))
    if text:
        yield text


def _unpacked(data: bytes) -> bytes | None:
    unpacker = next((make() for magic, make in _PACKED if data.startswith(magic)), None)
    if unpacker is None:
        return None
    try:
        found = unpacker.decompress(data, _MOST_UNPACKED_BYTES + 1)
    except (zlib.error, OSError, lzma.LZMAError, ValueError):
        return None
    is_whole = unpacker.eof and not unpacker.unused_data
    return found if is_whole and len(found) <= _MOST_UNPACKED_BYTES else None


def _deflated(data: bytes) -> bytes:
    """What deflate packed without a header, which only its end proves."""
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        found = unpacker.decompress(data, _MOST_UNPACKED_BYTES)
    except zlib.error:
        return b""
    return found if unpacker.eof and not unpacker.unused_data else b""


def _as_text(data: bytes) -> str | None:
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"
    for first, unmarked in ((0, "utf-16-be"), (1, "utf-16-le")):
        encoding = encoding if data[first::2].strip(b"\0") else unmarked
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if _CONTROL.search(text) else text
