"""What an image is, by its bytes and not by its name."""

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.slack.api.files import MOST_PIXELS, Kind, NotShown, kind_of


def png(width: int = 3, height: int = 2) -> bytes:
    return b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", width, height) + b"\x08\x02"


JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
    b"\xff\xc0\x00\x11\x08\x00\x02\x00\x03\x03"
)
GIF = b"GIF89a" + struct.pack("<HH", 3, 2)
VP8X = b"RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x01\x00\x00"
VP8L = b"RIFF\x00\x00\x00\x00WEBPVP8L\x00\x00\x00\x00\x2f" + struct.pack("<I", 2 | 1 << 14)
VP8 = b"RIFF\x00\x00\x00\x00WEBPVP8 \x00\x00\x00\x00\x00\x00\x00\x9d\x01\x2a" + struct.pack(
    "<HH", 3, 2
)


@pytest.mark.parametrize(
    ("content", "media"),
    [(png(), "png"), (JPEG, "jpeg"), (GIF, "gif"), (VP8X, "webp"), (VP8L, "webp"), (VP8, "webp")],
    ids=["png", "jpeg", "gif", "vp8x", "vp8l", "vp8"],
)
def test_its_kind_and_size_are_read(content: bytes, media: str) -> None:
    assert kind_of(content) == Kind(f"image/{media}", 3, 2)


@pytest.mark.parametrize("content", [b"", b"<svg/>", b"BM\x00", b"\xff\xd8\xff", png()[:20]])
def test_a_missing_or_broken_image_is_refused(content: bytes) -> None:
    with pytest.raises(NotShown):
        kind_of(content)


@pytest.mark.parametrize("size", [(MOST_PIXELS + 1, 1), (1, MOST_PIXELS + 1), (0, 1)])
def test_more_pixels_than_vendors_take_are_refused(size: tuple[int, int]) -> None:
    with pytest.raises(NotShown, match="pixels"):
        kind_of(png(*size))


def test_a_photo_has_its_own_size_and_not_its_thumbnails() -> None:
    segment = b"Exif\x00\x00" + JPEG
    exif = b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment
    frame = b"\xff\xff\xc2\x00\x11\x08" + struct.pack(">HH", 20_000, 20_000) + b"\x03"
    with pytest.raises(NotShown, match="20000 x 20000 pixels"):
        kind_of(b"\xff\xd8" + exif + frame)


@given(st.binary(max_size=60), st.sampled_from([b"", png()[:8], GIF[:6], JPEG[:3], VP8X[:12]]))
def test_any_bytes_are_an_image_or_refused(rest: bytes, begin: bytes) -> None:
    with suppress(NotShown):
        assert kind_of(begin + rest).width > 0
