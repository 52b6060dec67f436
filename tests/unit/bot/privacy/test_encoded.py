"""A secret in another encoding, or cut in two by a line's end, is masked; what decodes to nothing stays."""

import base64
import gzip
import html
import re
import zlib

import pytest

from bot.privacy.disguises import MOST_UNPACKED_BYTES, Encoded
from bot.privacy.redactor import TextRedactor

TOKEN = "ghp_" + "16C7e42F292c69C2E7C17b853053Be552B8f"
SENTENCE = f"the token is {TOKEN} and should be rotated"
REDACT = TextRedactor([], b"key").redact


def lines(text: str, width: int) -> str:
    return "\n".join(text[at : at + width] for at in range(0, len(text), width))


def dump(raw: bytes, group: int) -> str:
    """As `hexdump -C` (group 1) or `xxd` (group 2) print it."""
    rows = [raw[at : at + 16] for at in range(0, len(raw), 16)]
    return "\n".join(
        f"{16 * number:08x}{':' if group == 2 else ' '} {row.hex(' ', -group)}  |{row.decode()}|"
        for number, row in enumerate(rows)
    )


def tokens(data: bytes) -> list[tuple[int, int]]:
    return [found.span() for found in re.finditer(TOKEN.encode(), data)]


FORMS = {
    "percent": "".join(f"%{ord(c):02X}" for c in TOKEN),
    "percent on one": f"%67{TOKEN[1:]}",
    "unicode escapes": "".join(f"\\u{ord(c):04x}" for c in TOKEN),
    "one unicode escape": f"\\u0067{TOKEN[1:]}",
    "byte escapes": "".join(f"\\x{ord(c):02x}" for c in TOKEN),
    "decimal entities": "".join(f"&#{ord(c)};" for c in TOKEN),
    "hexadecimal entities": "".join(f"&#x{ord(c):X};" for c in TOKEN),
    "hex": TOKEN.encode().hex(),
    "upper-case hex": TOKEN.encode().hex().upper(),
    "spaced hex": TOKEN.encode().hex(" "),
    "colons": TOKEN.encode().hex(":"),
    "C array": ", ".join(f"0x{b:02x}" for b in TOKEN.encode()),
    "hexdump": dump(SENTENCE.encode(), 1),
    "xxd": dump(SENTENCE.encode(), 2),
    "Base64": base64.b64encode(TOKEN.encode()).decode(),
    "wrapped Base64": lines(base64.b64encode((SENTENCE * 5).encode()).decode(), 76),
    "gzip": base64.b64encode(gzip.compress(SENTENCE.encode())).decode(),
    "zlib": base64.b64encode(zlib.compress(SENTENCE.encode())).decode(),
    "a Helm release": base64.b64encode(base64.b64encode(gzip.compress(SENTENCE.encode()))).decode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_an_encoded_secret_is_masked_and_its_surroundings_stay(form: str) -> None:
    redacted = REDACT(f"seen {FORMS[form]} there")

    assert redacted.startswith("seen ")
    assert "[redacted:encoded#" in redacted
    assert [p for p in FORMS[form].splitlines() if p in redacted] == []
    assert html.unescape(redacted).count(TOKEN[10:18]) == 0
    assert REDACT(redacted) == redacted


@pytest.mark.parametrize("form", FORMS)
def test_encoded_harmless_text_is_unchanged(form: str) -> None:
    calm = FORMS[form].replace(TOKEN, "x" * len(TOKEN))
    plain = {"hexdump": dump(b"all pods of checkout are ready now, and calm", 1)}
    text = plain.get(form, base64.b64encode(b"all pods of checkout are ready now").decode())

    assert calm
    assert REDACT(f"seen {text} there") == f"seen {text} there"


@pytest.mark.parametrize("at", [8, 15, 24, 33])
@pytest.mark.parametrize(
    ("before", "between"),
    [
        ("2026-01-01T10:00:00Z INFO token ", "\n2026-01-01T10:00:00Z INFO "),
        ("2026-01-01T10:00:00Z stdout P ", "\n2026-01-01T10:00:01Z stdout F "),
        ("", "\n"),
        ('key = "', '" \\\n    "'),
    ],
    ids=["log", "container", "bare", "source"],
)
def test_a_token_split_over_two_lines_is_masked(at: int, before: str, between: str) -> None:
    redacted = REDACT(f"{before}{TOKEN[:at]}{between}{TOKEN[at:]}\nnext")

    assert TOKEN[:at] not in redacted
    assert TOKEN[at:] not in redacted
    assert redacted.endswith("\nnext")


def test_a_token_at_a_lines_end_masks_nothing_of_the_next_line() -> None:
    assert REDACT(f"leaked {TOKEN}\ncheckout-7d9f6c5b8-x2x7p up").endswith(
        "]\ncheckout-7d9f6c5b8-x2x7p up"
    )


def test_a_compression_bomb_is_only_unpacked_at_its_start() -> None:
    early = base64.b64encode(gzip.compress(TOKEN.encode() + b" " * 1_000_000))
    late = base64.b64encode(gzip.compress(b" " * MOST_UNPACKED_BYTES + TOKEN.encode()))

    assert [*Encoded().hiding(early, tokens)] == [(0, len(early))]
    assert [*Encoded().hiding(late, tokens)] == []
