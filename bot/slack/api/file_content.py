"""The text or the image in the bytes of a file."""

from dataclasses import dataclass
from typing import Final

# By how the bytes begin: Unicode's marks first, the longer before the shorter.
_MARKS: Final = (
    (b"\xef\xbb\xbf", "utf-8-sig", ""),
    (b"\xff\xfe\x00\x00", "utf-32", "read as UTF-32"),
    (b"\x00\x00\xfe\xff", "utf-32", "read as UTF-32"),
    (b"\xff\xfe", "utf-16", "read as UTF-16"),
    (b"\xfe\xff", "utf-16", "read as UTF-16"),
)
# https://en.wikipedia.org/wiki/List_of_file_signatures, of what people attach under a text's name.
_BINARY: Final = (
    (b"PK\x03\x04", "it is an archive, despite its name"),
    (b"\x1f\x8b", "it is a compressed file, despite its name"),
    (b"\x28\xb5\x2f\xfd", "it is a compressed file, despite its name"),
    (b"%PDF-", "it is a PDF, not text"),
    (b"\x7fELF", "it is a program, not text"),
    (b"\x89PNG", "it is an image"),
    (b"\xff\xd8\xff", "it is an image"),
    (b"GIF8", "it is an image"),
)
_EMPTY: Final = "it is empty"
_KEPT: Final = frozenset("\t\n\r\x0b\x0c\x1b")
_MOST_CONTROLS: Final = 0.01  # of the characters of a text in an old encoding; colour codes aside


class NotText(ValueError):
    """The bytes are not text; the message says why."""


def text_of(content: bytes) -> tuple[str, str]:
    """The text and a note on its encoding, empty for UTF-8. Raises NotText."""
    for begins, why in _BINARY:
        if content.startswith(begins):
            raise NotText(why)
    for mark, encoding, note in _MARKS:
        if content.startswith(mark):
            text = _strict(content, encoding)
            if not text.strip("\x00 \t\r\n\ufeff"):
                raise NotText(_EMPTY)
            return text, note
    if not content.strip(b"\x00 \t\r\n"):
        raise NotText(_EMPTY)
    if b"\x00" in content:
        return _unmarked(content)
    try:
        return content.decode("utf-8"), ""
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    if sum(each < " " and each not in _KEPT for each in text) > _MOST_CONTROLS * len(text):
        raise NotText("it is not text, despite its name")
    return text, "not UTF-8, so read as Latin-1"


def _strict(content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        raise NotText("it is not text: its bytes do not match its byte order mark") from None


def _unmarked(content: bytes) -> tuple[str, str]:
    """UTF-16 without a byte order mark: ASCII text has a zero in every second byte."""
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros, others = content[first::2].count(0), content[1 - first :: 2].count(0)
        if zeros > len(content) * 0.4 and not others and len(content) % 2 == 0:
            return _strict(content, encoding), "read as UTF-16"
    raise NotText("it is not text, despite its name")


MOST_BYTES: Final = 3_500_000  # Bedrock takes 3.75 MB, Anthropic 5, others more
MOST_PIXELS: Final = 8_000  # a side; Anthropic and Bedrock refuse more
# Markers of JPEG (ITU T.81, table B.1): frames of any coding but the tables numbered among them,
# what has no length, and where the picture's own data begin or end.
_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE: Final = frozenset({0x01, *range(0xD0, 0xD9)})
_DATA: Final = frozenset({0xD9, 0xDA})
_MOST_SEGMENTS: Final = 1_000  # before the frame; a colour profile is at most 255 of them


class NotShown(ValueError):
    """No model can see the image; the message says why."""


@dataclass(frozen=True, slots=True)
class Kind:
    """`media` as in a content type."""

    media: str
    width: int
    height: int


def kind_of(content: bytes) -> Kind:
    """Media type and size. Raises NotShown for other formats, broken and too large images."""
    kind = _png(content) or _gif(content) or _webp(content) or _jpeg(content)
    if kind is None:
        raise NotShown("it is not a PNG, JPEG, GIF or WebP, despite its name")
    if not (0 < kind.width <= MOST_PIXELS and 0 < kind.height <= MOST_PIXELS):
        raise NotShown(
            f"it is {kind.width} x {kind.height} pixels; the limit is {MOST_PIXELS} a side"
        )
    return kind


def _png(content: bytes) -> Kind | None:
    if not content.startswith(b"\x89PNG\r\n\x1a\n") or content[12:16] != b"IHDR":
        return None
    return Kind("image/png", _big(content[16:20]), _big(content[20:24]))


def _gif(content: bytes) -> Kind | None:
    if not content.startswith((b"GIF87a", b"GIF89a")):
        return None
    return Kind("image/gif", _little(content[6:8]), _little(content[8:10]))


def _webp(content: bytes) -> Kind | None:
    if content[:4] != b"RIFF" or content[8:12] != b"WEBP":
        return None
    match content[12:16]:
        case b"VP8X":
            width, height = _little(content[24:27]) + 1, _little(content[27:30]) + 1
        case b"VP8L":
            bits = _little(content[21:25])
            width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case _:
            width, height = _little(content[26:28]) & 0x3FFF, _little(content[28:30]) & 0x3FFF
    return Kind("image/webp", width, height)


def _jpeg(content: bytes) -> Kind | None:
    """Reads segment by segment, because a segment may hold a thumbnail of another size."""
    if not content.startswith(b"\xff\xd8\xff"):
        return None
    at = 2
    for _ in range(_MOST_SEGMENTS):
        if content[at : at + 1] != b"\xff" or at + 4 > len(content):
            return None
        marker = content[at + 1]
        if marker in _FRAMES:
            height, width = content[at + 5 : at + 7], content[at + 7 : at + 9]
            return Kind("image/jpeg", _big(width), _big(height)) if len(width) == 2 else None
        if marker in _DATA:
            return None
        if marker == 0xFF:  # a byte that fills
            at += 1
        elif marker in _BARE:
            at += 2
        else:
            at += 2 + _big(content[at + 2 : at + 4])
    return None


def _big(some: bytes) -> int:
    return int.from_bytes(some, "big")


def _little(some: bytes) -> int:
    return int.from_bytes(some, "little")
