"""A secret that people can still read is masked, however it is disguised."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.privacy.redactor import TextRedactor

CONFIGURED = "Zq8xLm51-plain-Vq7"
TOKEN = "ghp_" + "16C7e42F292c69C2E7C17b853053Be552B8f"
REDACT = TextRedactor([CONFIGURED], b"key").redact
UNSEEN = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u202e"


@pytest.mark.parametrize("unseen", UNSEEN, ids=[f"U+{ord(c):04X}" for c in UNSEEN])
@pytest.mark.parametrize("secret", [TOKEN, CONFIGURED, "ana.silva@shop.example"])
def test_an_invisible_character_hides_nothing(unseen: str, secret: str) -> None:
    at = len(secret) // 2
    text = f"é {secret[:3]}{unseen}{secret[3:at]}{unseen * 2}{secret[at:]} ünd {unseen}x"

    redacted = REDACT(text)

    assert secret[3:at] not in redacted
    assert secret[at + 1 :] not in redacted
    assert redacted.startswith("é [redacted:")
    assert redacted.endswith(f"] ünd {unseen}x")


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("pass\u200bword: correcthorse9", "correcthorse9"),
        ("password:\u200b correcthorse9", "correcthorse9"),
        ("g\u04bbp_" + TOKEN[4:], TOKEN[4:]),
        ("".join(chr(ord(c) + 0xFEE0) for c in TOKEN), chr(ord(TOKEN[9]) + 0xFEE0)),
    ],
    ids=["a name", "behind a name", "a look-alike", "full width"],
)
def test_a_disguised_name_or_letter_hides_nothing(text: str, secret: str) -> None:
    assert secret not in REDACT(f"seen {text} there")


@pytest.mark.parametrize(
    "text",
    [
        "Сервер checkout упал ⚠️ again 👩‍👩‍👧 ok",
        "東京（ＡＢＣ）です 1.2.3",
        "soft\u00adhyphen and zero\u200bwidth in prose",
        "commit 3f786850e387550f\u200bdab836ed7e6dc881de23001b rolled out",
    ],
)
def test_other_languages_symbols_and_harmless_text_are_unchanged(text: str) -> None:
    assert REDACT(text) == text


@pytest.mark.parametrize(
    "text",
    ["DB_PASSWORD=correcthorse9\nLOG_LEVEL=debug\n", f"the key {TOKEN} is out, rotate it now"],
)
def test_a_secret_in_readable_base64_is_masked_completely(text: str) -> None:
    encoded = base64.b64encode(text.encode()).decode()

    assert REDACT(f"  env: {encoded}\n").startswith("  env: [redacted:encoded#")
    assert encoded[8:24] not in REDACT(f"{encoded} {encoded}")


@pytest.mark.parametrize(
    "raw", [b"config: debug\nloglevel: info\nport: 8080\nname: checkout\n", bytes(range(256))]
)
def test_other_base64_is_unchanged(raw: bytes) -> None:
    text = f"data: {base64.b64encode(raw).decode()} end"

    assert REDACT(text) == text


@given(st.text(st.sampled_from(f"ab0:=@.- é\u0430\uff21{UNSEEN}"), max_size=60))
def test_a_mask_starts_and_ends_between_characters(noise: str) -> None:
    redacted = REDACT(f"{noise} {TOKEN} {noise}")

    assert TOKEN not in redacted
    assert "\ufffd" not in redacted
    assert REDACT(redacted) == redacted
