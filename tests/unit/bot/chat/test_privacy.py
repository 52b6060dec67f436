"""Redaction: what must not leave does not, what people need stays, and a failure sends nothing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.chat.privacy import TextRedactor
from tools.redactor import MASK_PREFIX, RedactionFailed

KEY = b"an installation's key"
AWS = "AKIA" + "QWADE5R44DOV5BYN"
GITHUB = "ghp_" + "16C7e42F292c69C2E7C17b853053Be552B8f"
JWT = "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0" + ".dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"


@pytest.fixture(scope="module")
def redactor() -> TextRedactor:
    return TextRedactor(["a-configured-secret"], KEY)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"key {AWS} leaked", AWS),
        (f'{{"token": "{GITHUB}"}}', GITHUB),
        (f"Authorization: Bearer {JWT}", JWT),
        ("postgres://app:s3cr3t-pw@db:5432/shop", "s3cr3t-pw"),
        ("DB_PASSWORD=correcthorse9", "correcthorse9"),
        ("curl -u admin:hunter22 https://x", "hunter22"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQ\n-----END RSA PRIVATE KEY-----",
            "MIIEow",
        ),
        ("-----BEGIN RSA PRIVATE KEY-----\\nMIIEowIBAAKCAQ", "MIIEow"),
        ("Set-Cookie: session=0123456789abcdef; HttpOnly", "0123456789abcdef"),
        ("paid with 4111 1111 1111 1111", "4111 1111 1111 1111"),
        ("mail ana.silva@shop.example now", "ana.silva@shop.example"),
        ("the key is a-configured-secret here", "a-configured-secret"),
        ("as base64 YS1jb25maWd1cmVkLXNlY3JldA==", "YS1jb25maWd1cmVkLXNlY3JldA"),
    ],
)
def test_a_secret_does_not_survive(redactor: TextRedactor, text: str, secret: str) -> None:
    redacted = redactor.redact(text)

    assert secret not in redacted
    assert MASK_PREFIX in redacted


@pytest.mark.parametrize(
    "text",
    [
        "commit 3f786850e387550fdab836ed7e6dc881de23001b rolled out",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "trace 4bf92f3577b34da6a3ce929d0e0e4736 span 00f067aa0ba902b7",
        "id 123e4567-e89b-12d3-a456-426614174000 at 1700000000.000100 (1700000000000)",
        'sum(rate(http_requests_total{service="checkout",code=~"5.."}[5m])) by (pod)',
        "pod checkout-7d9f6c5b8-x2x7p on 10.0.3.17 restarted, token: expired",
        "password authentication failed for user app",
    ],
)
def test_operational_text_is_untouched(redactor: TextRedactor, text: str) -> None:
    assert redactor.redact(text) == text


def test_equal_secrets_get_equal_marks_and_different_ones_do_not(redactor: TextRedactor) -> None:
    first, second, other = redactor.redact(f"{AWS} {AWS} {AWS[:-1]}A").split(" ")

    assert first == second
    assert first != other


def test_json_stays_json(redactor: TextRedactor) -> None:
    value = {"line": f"url=postgres://app:s3cr3t-pw@db/x {GITHUB}", "password": "correcthorse9"}

    assert isinstance(json.loads(redactor.redact(json.dumps(value))), dict)


@given(st.text(max_size=300))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    redactor = _SHARED
    once = redactor.redact(text + f" password={text} ")

    assert redactor.redact(once) == once


def test_personal_data_may_be_let_through_but_secrets_may_not() -> None:
    lenient = TextRedactor([], KEY, pii=False)

    assert lenient.redact("ana@shop.example") == "ana@shop.example"
    assert GITHUB not in lenient.redact(GITHUB)


def test_a_failure_sends_nothing(redactor: TextRedactor) -> None:
    with pytest.raises(RedactionFailed):
        redactor.redact(None)  # type: ignore[arg-type]


def test_a_lone_surrogate_is_replaced(redactor: TextRedactor) -> None:
    assert redactor.redact("a\ud800b") == "a?b"


_SHARED = TextRedactor([], KEY)
