"""Where RE2 has no wheel the same rules find the same, within limits, and fail closed beyond them."""

import re

import pytest

from bot.privacy.engine_stdlib import StdlibEngine, bounded, literal_of
from bot.privacy.redactor import TextRedactor
from bot.privacy.rules import rule_set
from tests import redaction_corpus
from tests.redaction_corpus import changed, recall
from tools.redactor import RedactionFailed


@pytest.fixture(scope="module")
def slow() -> TextRedactor:
    return TextRedactor(["a-configured-secret"], b"key", engine=StdlibEngine())


@pytest.mark.parametrize("tier", ["A", "B", "P1"])
def test_every_secret_is_masked(slow: TextRedactor, tier: str) -> None:
    total, missed = recall(redaction_corpus.own(), tier, slow.redact)

    assert total > 0
    assert missed == []


def test_no_operational_text_is_changed(slow: TextRedactor) -> None:
    assert changed(redaction_corpus.own(), slow.redact) == []
    assert "a-configured" not in slow.redact("a-configured-secret")


@pytest.mark.parametrize(("limit", "value"), [("max_text_bytes", 10), ("max_s", -1.0)])
def test_what_takes_too_long_does_not_leave(limit: str, value: float) -> None:
    engine = StdlibEngine()
    setattr(engine, limit, value)

    with pytest.raises(RedactionFailed):
        TextRedactor([], b"key", engine=engine).redact("the token of 20 characters")


def test_no_rule_within_a_window_repeats_without_end() -> None:
    rules = rule_set(pii=True, engine=StdlibEngine()).windowed
    plain = [re.sub(rb"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", b"c", bounded(r.pattern)) for r in rules]

    assert [p for p in plain if re.search(rb"[*+](?!\?)|\{\d+,\}|[*+]\?", p)] == []


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        (rb"\baio_[a-z]{3}", b"aio_"),
        (rb"(?i)\bcurl\b[^\n]*", b"curl"),
        (rb"SG\.[A-Z]+", b"SG."),
        (rb"abcd?", b"abc"),
        (rb"abc|def", b""),
        (rb"(?P<s>abc|def)", b""),
        (rb"[0-9]{4}abc", b""),
    ],
)
def test_the_literal_a_match_begins_with(pattern: bytes, literal: bytes) -> None:
    assert literal_of(pattern) == literal
