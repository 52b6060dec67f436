"""What an image is, by its own bytes: kind and size in pixels. Pure."""

from dataclasses import dataclass
from typing import Final

MOST_BYTES: Final = 3_500_000  # Bedrock takes 3.75 MB, Anthropic 5, others more
MOST_PIXELS: Final = 8_000  # a side; Anthropic and Bedrock refuse more
# Markers of JPEG (ITU T.81, table B.1): frames of any coding but the tables numbered among them,
# what has no length, and where the picture's own data begin or end.
_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE: Final = frozenset({0x01, *range(0xD0, 0xD9)})
_DATA: Final = frozenset({0xD9, 0xDA})
_MOST_SEGMENTS: Final = 1_000  # before the frame; a colour profile is at most 255 of them


class NotShown(ValueError):
    """Why no model is shown it, in words for people."""


@dataclass(frozen=True, slots=True)
class Kind:
    """`media` as in a content type."""

    media: str
    width: int
    height: int


def kind_of(content: bytes) -> Kind:
    """Raises NotShown for what is none of the four kinds, broken, or too large for the vendors."""
    kind = _png(content) or _gif(content) or _webp(content) or _jpeg(content)
    if kind is None:
        raise NotShown("it is no PNG, JPEG, GIF or WebP, whatever its name says")
    if not (0 < kind.width <= MOST_PIXELS and 0 < kind.height <= MOST_PIXELS):
        raise NotShown(f"it is {kind.width} x {kind.height} pixels; {MOST_PIXELS} a side are taken")
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
    """By its segments: one may hold a picture of its own, a thumbnail of another size."""
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
