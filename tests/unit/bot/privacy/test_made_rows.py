"""Hundreds of texts made by format: every secret is masked, and nothing else."""

import pytest

from bot.privacy.redactor import TextRedactor
from tests.redaction_rows import CALM, NAMED, TOKENS, negatives, positives

REDACT = TextRedactor([], b"key").redact
POSITIVES = [*positives()]
NEGATIVES = [*negatives()]


@pytest.mark.parametrize("kind", [*TOKENS, *NAMED])
def test_every_secret_of_a_kind_is_masked(kind: str) -> None:
    rows = [(text, secret) for each, text, secret in POSITIVES if each == kind]

    assert [text for text, secret in rows if secret in REDACT(text)] == []


@pytest.mark.parametrize("kind", CALM)
def test_harmless_text_of_a_kind_is_unchanged(kind: str) -> None:
    texts = [text for each, text in NEGATIVES if each == kind]

    assert [(text, REDACT(text)) for text in texts if REDACT(text) != text] == []


def test_each_kind_has_enough_rows() -> None:
    assert min(len(POSITIVES), len(NEGATIVES)) >= 300
