"""Redaction: what must not leave does not, what people need stays, and a failure sends nothing."""

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from bot.privacy.detector import RuleSet, rule_set
from bot.privacy.redactor import TextRedactor
from tests import redaction_corpus
from tests.redaction_corpus import changed, recall
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


def test_equal_secrets_have_equal_placeholders(redactor: TextRedactor) -> None:
    first, second, other = redactor.redact(f"{AWS} {AWS} {AWS[:-1]}A").split(" ")

    assert first == second
    assert first != other


def test_json_stays_json(redactor: TextRedactor) -> None:
    value = {"line": f"url=postgres://app:s3cr3t-pw@db/x {GITHUB}", "password": "correcthorse9"}

    assert isinstance(json.loads(redactor.redact(json.dumps(value))), dict)


@given(st.text(max_size=300))
def test_redaction_is_idempotent(text: str) -> None:
    redactor = _SHARED
    once = redactor.redact(text + f" password={text} ")

    assert redactor.redact(once) == once


def test_personal_data_may_be_permitted_but_secrets_may_not() -> None:
    lenient = TextRedactor([], KEY, pii=False)

    assert lenient.redact("ana@shop.example") == "ana@shop.example"
    assert GITHUB not in lenient.redact(GITHUB)


def test_a_failure_sends_nothing(redactor: TextRedactor) -> None:
    with pytest.raises(RedactionFailed):
        redactor.redact(None)  # type: ignore[arg-type]


def test_a_lone_surrogate_is_replaced(redactor: TextRedactor) -> None:
    assert redactor.redact("a\ud800b") == "a?b"


@pytest.mark.parametrize("tier", ["A", "B", "P1"])
def test_every_secret_of_our_own_corpus_is_masked(redactor: TextRedactor, tier: str) -> None:
    total, missed = recall(redaction_corpus.own(), tier, redactor.redact)

    assert total > 0
    assert missed == []


def test_no_operational_text_of_our_own_corpus_is_changed(redactor: TextRedactor) -> None:
    assert changed(redaction_corpus.own(), redactor.redact) == []


@pytest.mark.parametrize("secret", ['Zq8!x/Lm+51 "é', "plain-Value-0123", "line one\nline two9"])
def test_a_configured_secret_is_found_in_every_encoding(secret: str) -> None:
    redact = TextRedactor([secret], KEY, pii=False).redact
    raw = secret.encode()
    encoded = [
        secret,
        quote(secret, safe=""),
        quote_plus(secret),
        json.dumps(secret),
        json.dumps(json.dumps(secret)),
        html.escape(secret),
        raw.hex(),
        raw.hex().upper(),
        base64.b64encode(raw).decode(),
        base64.urlsafe_b64encode(b"u:" + raw).decode(),
        base64.b64encode(b"id" + raw + b"x").decode(),
        base64.b64encode(b"abc:" + raw).decode(),
    ]

    assert [e for e in encoded if MASK_PREFIX not in redact(f"seen {e} there")] == []


def test_a_short_configured_secret_is_masked_only_as_a_word() -> None:
    redact = TextRedactor(["pears7"], KEY).redact

    assert redact("apples and pears7x") == "apples and pears7x"
    assert "pears7" not in redact("it is pears7.")


def test_a_secret_across_the_engines_windows_is_found(redactor: TextRedactor) -> None:
    for shift in range(0, 5200, 37):
        assert GITHUB not in redactor.redact("x" * shift + " " + GITHUB + " end")


def test_a_secret_longer_than_a_window_is_masked_to_its_end(redactor: TextRedactor) -> None:
    long = "Ab1+" * 4000

    assert "Ab1+" not in redactor.redact(f'password="{long}" and {"calm " * 900}')


def test_text_full_of_matches_is_masked_as_a_whole(redactor: TextRedactor) -> None:
    assert "a@b.co" not in redactor.redact("a@b.co " * 5000)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"creditCardCvv": 159, "amount": 42}, ["amount"]),
        ({"password": "letmein", "user": "app"}, ["user"]),
        ({"name": "DB_PASSWORD", "value": "letmein"}, ["name"]),
        ({"headers": {"Authorization": "Negotiate abc", "Accept": "text/html"}}, ["headers"]),
        ({"kind": "Secret", "data": {"user": "YXBw"}, "type": "Opaque"}, ["kind", "type"]),
        ({"labels": {"secret": "db-credentials", "token": "expired"}}, ["labels"]),
    ],
)
def test_a_fields_name_reveals_its_content(
    redactor: TextRedactor, value: dict[str, JsonValue], kept: list[str]
) -> None:
    redacted = redactor.redact_value(value)

    text = json.dumps(redacted)
    assert [s for s in ("159", "letmein", "Negotiate", "YXBw") if s in text] == []
    assert isinstance(redacted, dict)
    assert [redacted[n] for n in kept if not isinstance(value[n], dict)] == [
        value[n] for n in kept if not isinstance(value[n], dict)
    ]
    assert redactor.redact_value(redacted) == redacted


def test_people_may_read_addresses_but_no_secrets(redactor: TextRedactor) -> None:
    assert redactor.redact_for_people("ask ana@shop.example") == "ask ana@shop.example"
    assert GITHUB not in redactor.redact_for_people(f"{GITHUB} 4111 1111 1111 1111")
    assert "4111" not in redactor.redact_for_people("paid with 4111 1111 1111 1111")


_SHARED = TextRedactor([], KEY)


def test_a_secret_before_a_truncated_one_is_masked(redactor: TextRedactor) -> None:
    early = [GITHUB, AWS, "aio_" + "Kq51RtYu0PmWe7Hq2Zx9LkJhGfDs", "ana.silva@shop.example"]
    text = f"{' '.join(early)} {'. ' * 5000}-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQ"

    assert [e for e in early if e in redactor.redact(text)] == []


def test_a_value_longer_than_a_window_hides_nothing_behind_it(redactor: TextRedactor) -> None:
    text = f"token={'Kq51RtYu' * 3000} token={'Zx9LkJhG' * 3}4 password=correcthorse9"
    redacted = redactor.redact(text)

    assert [s for s in ("Kq51RtYu", "Zx9LkJhG", "correcthorse9") if s in redacted] == []


@pytest.mark.parametrize("rules", [rule_set(pii=True), rule_set(pii=False)], ids=["all", "no pii"])
def test_rules_have_unique_names(rules: RuleSet) -> None:
    names = [rule.name for rule in (*rules.windowed, *rules.documents)]

    assert len(names) == len(set(names))
